package guard_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// inspector is an engine that counts the calls of Inspect, and holds them until pass is
// closed.
type inspector struct {
	lock.Engine
	calls atomic.Int64
	pass  chan struct{}
}

func (e *inspector) Inspect(ctx context.Context, key string) (lock.Holder, error) {
	e.calls.Add(1)
	select {
	case <-e.pass:
	case <-ctx.Done():
		return lock.Holder{}, ctx.Err()
	}
	return e.Engine.Inspect(ctx, key)
}

// crowd returns the errors of n callers that wait to share a transaction, and whose waits
// end together, while another process holds the key. Before pass is closed, all of them
// have left their line.
func crowd(t *testing.T, e *inspector, n int, passes bool) []error {
	t.Helper()
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "stocks.db"))
	wantNil(t, db.AutoMigrate(&Stock{}))
	wantNil(t, db.Create(&Stock{ID: 1, Left: 9}).Error)
	process := guardtest.New(t, db)
	e.Engine, e.pass = process.Engine(), make(chan struct{})
	locker, err := lock.New(e, lock.Config{})
	wantNil(t, err)
	g, err := guard.New(db, locker, guard.Config{Service: "s"})
	wantNil(t, err)
	t.Cleanup(func() { wantNil(t, errors.Join(g.Close(bg), locker.Close(bg))) })

	other, err := lock.New(process.Engine(), lock.Config{})
	wantNil(t, err)
	t.Cleanup(func() { wantNil(t, other.Close(bg)) })
	lease, err := other.Acquire(bg, "sku:1")
	wantNil(t, err)
	defer func() { wantNil(t, lease.Release(bg)) }()

	leads, stop := context.WithCancel(bg)
	ctx, cancel := context.WithCancel(bg)
	errs := make([]error, n)
	call := func(ctx context.Context) error {
		return g.Apply(ctx, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.Wait(time.Minute), guard.Combine())
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { _ = call(leads) })
	testwait.Until(t, "one leads", func() bool { return g.Lines() == 1 })
	var rest sync.WaitGroup
	for i := range errs {
		rest.Go(func() { errs[i] = call(ctx) })
	}
	testwait.Until(t, "the others queue", func() bool { return g.Queued("sku:1") == n })
	cancel()
	testwait.Until(t, "nobody queues", func() bool { return g.Queued("sku:1") == 0 })
	if passes {
		close(e.pass)
	}
	rest.Wait()
	return errs
}

// TestCombineRefusedKnowsTheHolder: a caller whose wait ends in the line is told who holds
// the key and for how long, and a crowd of them asks the engine together.
func TestCombineRefusedKnowsTheHolder(t *testing.T) {
	var e inspector
	for _, err := range crowd(t, &e, 64, true) {
		wantIs(t, err, guard.ErrBusy)
		wantIs(t, err, context.Canceled)
		if held, ok := errors.AsType[*lock.HeldError](err); !ok || held.Key != "sku:1" || held.Holder.Owner == "" || held.Holder.TTL <= 0 {
			t.Fatalf("the error is %+v, want who holds the key and for how long", held)
		}
	}
	if n := e.calls.Load(); n > 16 {
		t.Errorf("64 callers sent %d questions", n)
	}
}

// TestCombineRefusedBySilence: an engine that does not answer delays no refusal for long.
func TestCombineRefusedBySilence(t *testing.T) {
	var e inspector
	for _, err := range crowd(t, &e, 8, false) {
		wantIs(t, err, guard.ErrBusy)
		if held, ok := errors.AsType[*lock.HeldError](err); !ok || held.Holder != (lock.Holder{Place: lock.Place{Slot: -1}}) {
			t.Errorf("the error is %+v, want no holder and no slot", held)
		}
	}
	if n := e.calls.Load(); n > 6 {
		t.Errorf("8 callers sent %d questions", n)
	}
}
