package quorumlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// panics is a node all of whose methods panic.
type panics struct{ lockengine.Engine }

func (panics) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	panic("a hook")
}
func (panics) Renew(context.Context, []lockengine.Request, time.Duration) []error { panic("a hook") }
func (panics) Release(context.Context, lockengine.Request) error                  { panic("a hook") }
func (panics) Inspect(context.Context, string) (lockengine.Holder, error)         { panic("a hook") }
func (panics) Ping(context.Context) error                                         { panic("a hook") }
func (panics) Probe(context.Context, string) error                                { panic("a hook") }
func (panics) Watch(context.Context, string, func()) (stop func(), err error)     { panic("a hook") }
func (panics) WatchLoss(lockengine.Request, func()) (stop func())                 { panic("a hook") }

// A node that panics is a node that does not answer.
func TestPanicOfANode(t *testing.T) {
	e := over(t, panics{memlock.New()}, memlock.New(), memlock.New())
	acquire(t, e, mine)
	_, err := e.Acquire(t.Context(), theirs, ttl)
	wantHeld(t, err, mine.Owner)
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], nil)
	if h, err := e.Inspect(t.Context(), "k"); err != nil || h.Owner != mine.Owner {
		t.Errorf("Inspect: %+v, %v", h, err)
	}
	wantIs(t, e.Ping(t.Context()), nil)
	wantIs(t, e.Probe(t.Context(), "k"), nil)
	if _, err := e.Watch(t.Context(), "k", func() {}); err == nil {
		t.Error("Watch succeeds on nodes that notify of nothing")
	}
	release(t, e, mine)
}
