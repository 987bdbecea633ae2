package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// clockSet is more than what one heartbeat is stored later than the next.
const clockSet = time.Minute

// A heartbeat replaces the last one of its instance, unless that is newer. The messages and the calls that
// it has counted stay if this one counts none.
const (
	putHeartbeat = `
			INSERT INTO heartbeats (service, instance, at, every, received_at, epoch, origin, target, settled, made_by, remaining, learned_at,
				messages, waiting, oldest, parked, dead, undecided, oldest_dead, counted_at,
				calls, calls_pending, calls_oldest, calls_undecided, calls_oldest_undecided, calls_at)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?5, ?12, ?13, ?14, ?15, ?16, ?17, ?18, CASE WHEN ?12 = '' THEN 0 ELSE ?5 END,
				?19, ?20, ?21, ?22, ?23, CASE WHEN ?19 = '' THEN 0 ELSE ?5 END)
			ON CONFLICT (service, instance) DO UPDATE SET
				lag_before = received_at - at, at = excluded.at, every = excluded.every, received_at = excluded.received_at,
				learned_at = CASE WHEN (epoch, target, settled) = (excluded.epoch, excluded.target, excluded.settled)
					THEN learned_at ELSE excluded.learned_at END,
				epoch = excluded.epoch, origin = excluded.origin, target = excluded.target, settled = excluded.settled,
				made_by = excluded.made_by, remaining = excluded.remaining`
	putCounted = `, messages = excluded.messages, waiting = excluded.waiting, oldest = excluded.oldest, parked = excluded.parked,
				dead = excluded.dead, undecided = excluded.undecided, oldest_dead = excluded.oldest_dead, counted_at = excluded.counted_at`
	putCalls = `, calls = excluded.calls, calls_pending = excluded.calls_pending, calls_oldest = excluded.calls_oldest,
				calls_undecided = excluded.calls_undecided, calls_oldest_undecided = excluded.calls_oldest_undecided, calls_at = excluded.calls_at`
	ifNewer = `
			WHERE excluded.received_at >= received_at`
)

// AddHeartbeat stores the last heartbeat of an instance. A late one does not
// overwrite a newer one. Where those of the service are from a time to come, the
// clock was set back since, and they are taken to be of now: none hides another. One that counts
// no messages, or no calls, leaves what the last one has counted. An error may match ErrManyServices.
func (s *Store) AddHeartbeat(ctx context.Context, h incident.Heartbeat) error {
	service, received := text.Clip(h.Service, MaxText), micros(h.ReceivedAt)
	return s.in(ctx, "insert heartbeat", func(tx *sql.Tx) error {
		if err := introduce(ctx, tx, service, text.Clip(h.Sender, MaxText)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE heartbeats SET received_at = ?1, counted_at = min(counted_at, ?1), calls_at = min(calls_at, ?1) WHERE service = ?2 AND received_at > ?1 + ?3`,
			received, service, clockSet.Microseconds())
		if err != nil {
			return err
		}
		if err := addSwitch(ctx, tx, service, h); err != nil {
			return err
		}
		r, m, c := h.Record, h.Messages, h.Calls
		_, err = tx.ExecContext(ctx, replacing(h),
			service, text.Clip(h.Instance, MaxText), micros(h.At), h.Every.Microseconds(), received,
			r.Epoch, text.Clip(r.From, MaxText), text.Clip(r.To, MaxText), r.Settled, text.Clip(r.By, MaxText), r.Left.Microseconds(),
			text.Clip(m.Table, MaxText), m.Waiting, m.Oldest.Microseconds(), m.Parked, m.Dead, m.Undecided, m.OldestDead.Microseconds(),
			text.Clip(c.Table, MaxText), c.Pending, c.Oldest.Microseconds(), c.Undecided, c.OldestUndecided.Microseconds())
		return err
	})
}

// replacing returns the statement that stores a heartbeat: it replaces the counts that it has.
func replacing(h incident.Heartbeat) string {
	switch messages, calls := h.Messages.Table != "", h.Calls.Table != ""; {
	case messages && calls:
		return putHeartbeat + putCounted + putCalls + ifNewer
	case messages:
		return putHeartbeat + putCounted + ifNewer
	case calls:
		return putHeartbeat + putCalls + ifNewer
	}
	return putHeartbeat + ifNewer
}

// Heartbeats returns the last heartbeat of each service, of whichever instance it came, in
// order of service. How many there are is bounded by MaxServices for each sender.
func (s *Store) Heartbeats(ctx context.Context) ([]incident.Heartbeat, error) {
	// With a lone max(), SQLite takes the other columns from the row that has it.
	return collect(ctx, s, "heartbeats", func(h *incident.Heartbeat) []any {
		return []any{&h.Service, &h.Instance, instant{&h.At}, span{&h.Every}, instant{&h.ReceivedAt}}
	}, `SELECT service, instance, at, every, max(received_at) FROM heartbeats
		GROUP BY service ORDER BY service`)
}

// sameLag is how far the lags of two heartbeats may differ, in microseconds, to
// measure a clock. Heartbeats that were delayed and arrive at once differ by more.
const sameLag = 500_000

// Clocks returns the clocks of instances that are wrong by at least so much, as one
// of their last two heartbeats says.
func (s *Store) Clocks(ctx context.Context, least time.Duration) ([]incident.Clock, error) {
	return collect(ctx, s, "clocks", func(c *incident.Clock) []any {
		return []any{&c.Service, &c.Instance, span{&c.Behind}, &c.Agreed}
	}, `SELECT service, instance, received_at - at, abs(received_at - at - lag_before) <= ?1 FROM heartbeats
		WHERE lag_before IS NOT NULL AND (abs(received_at - at) >= ?2 OR abs(lag_before) >= ?2)`,
		sameLag, least.Microseconds())
}
