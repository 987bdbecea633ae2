package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/belaygo/belay/notify"
)

// A sender that may make no more services known stops no other that reports the same service
// in the same transaction.
func TestBatchOfSenders(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.write.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO services SELECT 'job-' || i, 'ci', 0 FROM n`, MaxServices)
	if err != nil {
		t.Fatal(err)
	}
	var batch []*addition
	for n, sender := range []string{"ci", "shop", "ci"} {
		a := anAddition(strconv.Itoa(n))
		a.sender = sender
		batch = append(batch, a)
	}
	s.addAll(batch)
	if a := batch[0]; a.added || !errors.Is(a.err, ErrManyServices) {
		t.Errorf("of a sender with too many services: %v, %v", a.added, a.err)
	}
	for _, a := range batch[1:] { // by now the service is known
		if !a.added || a.err != nil {
			t.Errorf("of %s: %v, %v", a.sender, a.added, a.err)
		}
	}
}

// timeIsUp is called by the function time_is_up of SQL, which connections get when they are
// opened.
var timeIsUp = func() *atomic.Pointer[context.CancelFunc] {
	var p atomic.Pointer[context.CancelFunc]
	sqlite.MustRegisterScalarFunction("time_is_up", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		(*p.Load())()
		return nil, nil
	})
	return &p
}()

// Events that are stored one by one share one bound. When it ends, those that are left fail
// instead of making their senders wait, and can be stored the next time.
func TestOneByOneEnds(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	timeIsUp.Store(&cancel)
	_, err = s.write.ExecContext(t.Context(), `
		CREATE TRIGGER bad BEFORE INSERT ON events WHEN new.event_id = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END;
		CREATE TRIGGER slow BEFORE INSERT ON events WHEN new.event_id = 'slow' BEGIN SELECT time_is_up(); END`)
	if err != nil {
		t.Fatal(err)
	}
	batch := []*addition{anAddition("before"), anAddition("bad"), anAddition("slow"), anAddition("after")}
	s.addEach(ctx, batch)
	if before, bad := batch[0], batch[1]; !before.added || before.err != nil || bad.added || bad.err == nil || errors.Is(bad.err, context.Canceled) {
		t.Errorf("before: %v, %v; bad: %v, %v", before.added, before.err, bad.added, bad.err)
	}
	if slow := batch[2]; slow.added || slow.err == nil {
		t.Errorf("slow: %v, %v", slow.added, slow.err)
	}
	if after := batch[3]; after.added || !errors.Is(after.err, context.Canceled) {
		t.Errorf("after: %v, %v, want the end of the time", after.added, after.err)
	}
	if added, err := s.Add(t.Context(), batch[3].event, nil, ""); !added || err != nil {
		t.Errorf("sent again: %v, %v", added, err)
	}
}

func anAddition(id string) *addition {
	ev := notify.Event{ID: id, Service: "orders", Instance: "i", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
		Key: "order:1", CaughtAt: time.Now(), Count: 1}
	return &addition{event: ev, raw: []byte("{}")}
}

// A page or a scrape does not wait for another reader for longer than it has time.
func TestCurrentEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.current.turn <- struct{}{} // somebody reads
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Current(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
}
