package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/notify"
)

// addTogether stores events in one transaction, all or none.
func (s *Store) addTogether(ctx context.Context, batch []*addition) error {
	err := s.in(ctx, "insert events", func(tx *sql.Tx) error {
		ins, err := s.inserter(ctx, tx, batch)
		if err != nil {
			return err
		}
		for _, a := range batch {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := ins.add(a); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.fresh.add(batch)
	}
	return err
}

const insertEvent = `
	INSERT INTO events (event_id, received_at, caught_at, service, instance, verdict, outcome,
		key, table_name, node, slot, count, body, body_size, sender)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (event_id) DO NOTHING`

// inserter stores the events of one transaction.
type inserter struct {
	ctx    context.Context // without an end
	tx     *sql.Tx
	insert *sql.Stmt
	known  map[string]bool // services
}

// inserter returns an inserter of events into tx. Its statements do not end with ctx: none of them
// waits, and the driver starts a goroutine for each statement whose context can end.
func (s *Store) inserter(ctx context.Context, tx *sql.Tx, batch []*addition) (*inserter, error) {
	ctx = context.WithoutCancel(ctx)
	known, err := knownServices(ctx, tx.StmtContext(ctx, s.known), batch)
	return &inserter{ctx: ctx, tx: tx, insert: tx.StmtContext(ctx, s.insert), known: known}, err
}

// add stores one event, unless its service is new and its sender may not introduce it. The
// errors that it returns are the transaction's.
func (i *inserter) add(a *addition) error {
	ev, sender := a.event, text.Clip(a.sender, MaxText)
	service := text.Clip(ev.Service, MaxText)
	a.added, a.err = false, nil
	if !i.known[service] {
		switch err := introduce(i.ctx, i.tx, service, sender); {
		case errors.Is(err, ErrManyServices): // of this sender: another one's event may follow
			a.err = err
			return nil
		case err != nil:
			return err
		}
		i.known[service] = true
	}
	a.at = time.Now()
	caught := incident.CaughtAt(ev, a.at).UnixMicro()
	res, err := i.insert.ExecContext(i.ctx,
		ev.ID, a.at.UnixMicro(), caught,
		service, text.Clip(ev.Instance, MaxText), ev.Verdict, ev.Outcome,
		text.Clip(ev.Key, MaxText), text.Clip(ev.Table, MaxText), text.Clip(ev.Place.Node, MaxText),
		ev.Place.Slot, min(ev.Count, MaxCount), a.raw[:min(len(a.raw), MaxBody)], len(a.raw), sender)
	n, err := changed(res, err)
	if err != nil || n == 0 {
		return err
	}
	a.added = true
	if a.seq, err = res.LastInsertId(); err != nil {
		return err
	}
	return i.addKeys(a, caught)
}

// maxEventKeys bounds the further keys of an event by which it is found.
const maxEventKeys = 64

// addKeys stores the further keys of an event that was inserted. A body that is cut names none.
func (i *inserter) addKeys(a *addition, caught int64) error {
	keys := furtherKeys(a.event)
	if len(keys) == 0 || len(a.raw) > MaxBody {
		return nil
	}
	_, err := i.tx.ExecContext(i.ctx, `INSERT OR IGNORE INTO event_keys (key, caught_at, seq)
		SELECT value, ?, ? FROM json_each(?)`, caught, a.seq, document{keys})
	return err
}

// furtherKeys returns the keys that an operation held beside the one that its event reports.
// Those that are too long to be a key's are left out.
func furtherKeys(ev notify.Event) []string {
	key := text.Clip(ev.Key, MaxText)
	keys := slices.DeleteFunc(slices.Clone(ev.Keys), func(k string) bool { return k == key || len(k) > MaxText })
	return keys[:min(len(keys), maxEventKeys)]
}
