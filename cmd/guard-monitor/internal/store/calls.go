package store

import (
	"context"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// Calls returns how many requests of guard.Call are not settled in which tables, as Messages returns
// the messages.
func (s *Store) Calls(ctx context.Context) ([]incident.Calls, error) {
	return collect(ctx, s, "calls", func(c *incident.Calls) []any {
		return []any{
			&c.Service, &c.Table, &c.Instance, &c.Pending, span{&c.Oldest}, &c.Undecided, span{&c.OldestUndecided}, span{&c.Every}, instant{&c.ReceivedAt},
		}
	}, `WITH last AS (SELECT service, calls, max(calls_at) AS calls_at FROM heartbeats WHERE calls <> '' GROUP BY service, calls)
		SELECT h.service, h.calls, h.instance, h.calls_pending, h.calls_oldest, h.calls_undecided, h.calls_oldest_undecided, h.every, h.calls_at
		FROM last CROSS JOIN heartbeats h ON h.service = last.service AND h.calls = last.calls AND h.calls <> ''
		WHERE last.calls_at - h.calls_at <= max(3 * h.every, ?1) ORDER BY h.service, h.calls, h.instance`,
		incident.LeastPatience.Microseconds())
}
