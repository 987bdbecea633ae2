package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/notify"
)

const (
	// maxBatch bounds the events of one transaction.
	maxBatch = 256
	// batchTimeout bounds the write of a batch, in whatever pieces. It is longer than SQLite
	// waits for another writer.
	batchTimeout = busy + 2*time.Second
)

var errClosed = errors.New("store is closed")

// addition is an event on its way to the disk.
type addition struct {
	event  notify.Event
	raw    []byte
	sender string

	done  chan struct{} // closed when added and err are set
	added bool
	err   error
}

// Add stores ev with raw, the JSON it was decoded from, and sender, who is known to have
// sent it, or "". A nil raw is made from ev. It returns after the event is on disk, and
// reports false for an event whose ID is stored already. If ctx ends, the event may be
// stored all the same. An error may match ErrManyServices.
//
// Events that are added at the same time share a transaction, and one write to the disk.
func (s *Store) Add(ctx context.Context, ev notify.Event, raw []byte, sender string) (added bool, err error) {
	if err := errors.Join(ctx.Err(), ev.Validate()); err != nil {
		return false, err
	}
	if raw == nil {
		if raw, err = json.Marshal(&ev); err != nil {
			return false, fmt.Errorf("encode event: %w", err)
		}
	}
	a := &addition{event: ev, raw: raw, sender: sender, done: make(chan struct{})}
	select {
	case s.additions <- a:
	case <-s.closing:
		return false, errClosed
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case <-a.done:
		return a.added, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// writeEvents stores events until the store is closed: each time those that wait.
func (s *Store) writeEvents() {
	defer close(s.written)
	for {
		select {
		case first := <-s.additions:
			batch := s.gather(first)
			s.addAll(batch)
			for _, a := range batch {
				close(a.done)
			}
		case <-s.closing:
			return
		}
	}
}

func (s *Store) gather(first *addition) []*addition {
	batch := []*addition{first}
	for len(batch) < maxBatch {
		select {
		case next := <-s.additions:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// addAll stores events in one transaction. If that fails, each gets one of its own: one of
// them may be to blame.
func (s *Store) addAll(batch []*addition) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	err := s.addTogether(ctx, batch)
	if err == nil {
		return
	}
	if len(batch) == 1 || locked(err) || ctx.Err() != nil {
		fail(batch, err)
		return
	}
	s.addEach(ctx, batch)
}

// addEach stores events one by one until ctx ends. An event that it does not get to fails:
// its sender sends it again, and does not wait for all the others.
func (s *Store) addEach(ctx context.Context, batch []*addition) {
	for n := range batch {
		err := s.addTogether(ctx, batch[n:n+1])
		if err != nil {
			fail(batch[n:n+1], err)
		}
		switch rest := batch[n+1:]; {
		case ctx.Err() != nil:
			fail(rest, fmt.Errorf("insert events: %w", ctx.Err()))
			return
		case locked(err):
			fail(rest, err)
			return
		}
	}
}

func fail(batch []*addition, err error) {
	for _, a := range batch {
		a.added, a.err = false, err
	}
}

// addTogether stores events in one transaction, all or none.
func (s *Store) addTogether(ctx context.Context, batch []*addition) error {
	return s.in(ctx, "insert events", func(tx *sql.Tx) error {
		known := make(map[string]bool) // services
		for _, a := range batch {
			if err := s.add(ctx, tx, a, known); err != nil {
				return err
			}
		}
		return nil
	})
}

const insertEvent = `
	INSERT INTO events (event_id, received_at, caught_at, service, instance, verdict, outcome,
		key, table_name, node, slot, count, body, body_size, sender)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (event_id) DO NOTHING`

// add stores one event, unless its service is new and its sender may not introduce it. The
// errors that it returns are the transaction's.
func (s *Store) add(ctx context.Context, tx *sql.Tx, a *addition, known map[string]bool) error {
	ev, sender := a.event, text.Clip(a.sender, MaxText)
	service := text.Clip(ev.Service, MaxText)
	a.added, a.err = false, nil
	if !known[service] {
		switch err := introduce(ctx, tx, service, sender); {
		case errors.Is(err, ErrManyServices): // of this sender: another one's event may follow
			a.err = err
			return nil
		case err != nil:
			return err
		}
		known[service] = true
	}
	now := time.Now()
	res, err := tx.StmtContext(ctx, s.insert).ExecContext(ctx, //nolint:sqlclosecheck // the transaction closes it
		ev.ID, now.UnixMicro(), incident.CaughtAt(ev, now).UnixMicro(),
		service, text.Clip(ev.Instance, MaxText), ev.Verdict, ev.Outcome,
		text.Clip(ev.Key, MaxText), text.Clip(ev.Table, MaxText), text.Clip(ev.Place.Node, MaxText),
		ev.Place.Slot, min(ev.Count, MaxCount), a.raw[:min(len(a.raw), MaxBody)], len(a.raw), sender)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	a.added = n == 1
	return err
}
