package switchlock_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A panicky source panics while it is set.
type panicky struct {
	store
	set atomic.Bool
}

func (p *panicky) Read(ctx context.Context) (switchlock.Record, error) {
	if p.set.Load() {
		panic("a driver")
	}
	return p.store.Read(ctx)
}

// A source that panics is one that can't be read, until it panics no more.
func TestPanicOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(panicky)
		e := open(t, switchlock.Config{
			Source: source, Engines: map[string]lockengine.Engine{"a": memlock.New()}, First: "a", Lease: lease,
			Logger: slog.New(slog.DiscardHandler),
		})
		synctest.Wait()
		source.set.Store(true)
		eventually(t, "the record is too old", func() bool {
			_, err := e.Acquire(t.Context(), mine, ttl)
			return err != nil
		})
		source.set.Store(false)
		eventually(t, "the record is read again", func() bool {
			_, err := e.Acquire(t.Context(), mine, ttl)
			return err == nil
		})
	})
}

// unstoppable is an engine whose watches panic when they are stopped.
type unstoppable struct{ lockengine.Engine }

func (unstoppable) Watch(context.Context, string, func()) (stop func(), err error) {
	return func() { panic("an engine") }, nil
}

// A watch that panics when Close stops it does not keep the engine open.
func TestPanicOfAWatchDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, switchlock.Config{
			Source: new(store), Engines: map[string]lockengine.Engine{"a": unstoppable{memlock.New()}}, First: "a", Lease: lease,
			Logger: slog.New(slog.DiscardHandler),
		})
		synctest.Wait()
		if _, err := e.Watch(t.Context(), "k", func() {}); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
