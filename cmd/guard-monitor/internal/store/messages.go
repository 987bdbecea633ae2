package store

import (
	"context"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// Messages returns how many messages wait in which tables, in order of service, table and instance. An
// instance has the last count of its heartbeats, unless it is so much older than the last one of the
// table that it may be gone.
func (s *Store) Messages(ctx context.Context) ([]incident.Messages, error) {
	return collect(ctx, s, "messages", func(m *incident.Messages) []any {
		return []any{
			&m.Service, &m.Table, &m.Instance, &m.Waiting, span{&m.Oldest}, &m.Parked, &m.Dead, &m.Undecided, span{&m.OldestDead},
			span{&m.Every}, instant{&m.ReceivedAt},
		}
	}, `WITH last AS (SELECT service, messages, max(counted_at) AS counted_at FROM heartbeats WHERE messages <> '' GROUP BY service, messages)
		SELECT h.service, h.messages, h.instance, h.waiting, h.oldest, h.parked, h.dead, h.undecided, h.oldest_dead, h.every, h.counted_at
		FROM last CROSS JOIN heartbeats h ON h.service = last.service AND h.messages = last.messages AND h.messages <> ''
		WHERE last.counted_at - h.counted_at <= max(3 * h.every, ?1) ORDER BY h.service, h.messages, h.instance`,
		incident.LeastPatience.Microseconds())
}
