package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// addSwitch notes the switch that a heartbeat reports, before that is stored. The record of
// a switch that is over is one only if the service had an older record before: else it was
// made long ago. One that a newer record has replaced, as another instance says, is no news.
func addSwitch(ctx context.Context, tx *sql.Tx, service string, h incident.Heartbeat) error {
	r := h.Record
	if r.Epoch == 0 {
		return nil
	}
	at, from, to := micros(h.ReceivedAt), text.Clip(r.From, MaxText), text.Clip(r.To, MaxText)
	// A newer record is written only when the switch before is over, or goes back.
	_, err := tx.ExecContext(ctx, `UPDATE switches SET over_at = ? WHERE service = ? AND epoch < ? AND over_at = 0`, at, service, r.Epoch)
	if err != nil || r.From == r.To {
		return err
	}
	var over int64
	if r.Settled {
		over = at
	}
	_, err = tx.ExecContext(ctx, `UPDATE switches SET over_at = ? WHERE service = ? AND epoch = ? AND origin = ? AND target = ? AND over_at = 0`,
		over, service, r.Epoch, from, to)
	if err != nil {
		return err
	}
	added, err := execIn(ctx, tx, `
		INSERT INTO switches (service, epoch, origin, target, made_by, seen_at, over_at)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
		WHERE (?7 = 0 OR EXISTS (SELECT 1 FROM heartbeats WHERE service = ?1 AND epoch BETWEEN 1 AND ?2 - 1))
			AND NOT EXISTS (SELECT 1 FROM heartbeats WHERE service = ?1 AND epoch > ?2 AND received_at + 3 * every >= ?6)
		ON CONFLICT DO NOTHING`, service, r.Epoch, from, to, text.Clip(r.By, MaxText), at, over)
	if err != nil || added == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE switches SET over_at = ?1 WHERE service = ?2 AND over_at = 0
		AND id < (SELECT max(id) FROM switches WHERE service = ?2)`, at, service)
	return err
}

const clauseOfSwitches = ` WHERE seen_at >= ? ORDER BY seen_at DESC`

// Switches returns the switches that were first reported since a time, the newest first.
// Purge keeps incident.MaxHeartbeats of them.
func (s *Store) Switches(ctx context.Context, since time.Time) ([]incident.Switch, error) {
	return collect(ctx, s, "switches", func(w *incident.Switch) []any {
		return []any{&w.Service, &w.Epoch, &w.From, &w.To, &w.By, instant{&w.SeenAt}, instant{&w.OverAt}}
	}, `SELECT service, epoch, origin, target, made_by, seen_at, over_at FROM switches`+clauseOfSwitches, micros(since))
}

// Switching returns the last heartbeat of each instance of the services that can switch, in
// order of service and instance.
func (s *Store) Switching(ctx context.Context) ([]incident.Heartbeat, error) {
	return collect(ctx, s, "heartbeats", func(h *incident.Heartbeat) []any {
		r := &h.Record
		return []any{
			&h.Service, &h.Instance, instant{&h.At}, span{&h.Every}, instant{&h.ReceivedAt},
			&r.Epoch, &r.From, &r.To, &r.Settled, &r.By, span{&r.Left},
		}
	}, `SELECT service, instance, at, every, received_at, epoch, origin, target, settled, made_by, remaining FROM heartbeats
		WHERE service IN (SELECT service FROM heartbeats WHERE epoch > 0) ORDER BY service, instance`)
}
