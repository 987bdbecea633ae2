package store

import (
	"context"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// Messages returns what waits in the tables of messages, by the last heartbeat that counts those of a
// table, in order of service and table.
func (s *Store) Messages(ctx context.Context) ([]incident.Messages, error) {
	// With a lone max(), SQLite takes the other columns from the row that has it.
	return collect(ctx, s, "messages", func(m *incident.Messages) []any {
		return []any{
			&m.Service, &m.Table, &m.Waiting, span{&m.Oldest}, &m.Parked, &m.Dead, &m.Undecided, span{&m.OldestDead},
			span{&m.Every}, instant{&m.ReceivedAt},
		}
	}, `SELECT service, messages, waiting, oldest, parked, dead, undecided, oldest_dead, every, max(received_at) FROM heartbeats
		WHERE messages <> '' GROUP BY service, messages ORDER BY service, messages`)
}
