package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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
	event   notify.Event
	raw     []byte
	decoded bool // event is what raw holds, to the last field
	sender  string

	done  chan struct{} // closed when added and err are set
	added bool
	err   error
	seq   int64     // if added
	at    time.Time // when it was stored
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
	decoded := raw != nil
	if !decoded {
		if raw, err = json.Marshal(&ev); err != nil {
			return false, fmt.Errorf("encode event: %w", err)
		}
	}
	a := &addition{event: ev, raw: raw, decoded: decoded, sender: sender, done: make(chan struct{})}
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
