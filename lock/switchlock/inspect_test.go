package switchlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A named engine keeps its locks at a node of its name.
type named struct {
	lockengine.Engine
	node string
}

func (n named) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	g, err := n.Engine.Acquire(ctx, r, ttl)
	g.Node = n.node
	return g, err
}

func (n named) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	h, err := n.Engine.Inspect(ctx, key)
	h.Node = n.node
	return h, err
}

// While locks move, Inspect names the engine that the grant names. A holder that only one of the
// engines has, or that the old one has beside another of the new one, is at that engine.
func TestInspectNamesTheEngineOfTheGrant(t *testing.T) {
	old, next := named{memlock.New(), "old"}, named{memlock.New(), "new"}
	e := open(t, switchlock.Config{
		Source: &store{record: unending()}, First: "old",
		Engines: map[string]lockengine.Engine{"old": old, "new": next},
	})
	want := func(owner, node string) {
		t.Helper()
		if h, err := e.Inspect(t.Context(), "k"); err != nil || h.Owner != owner || h.Node != node {
			t.Errorf("Inspect: %+v, %v, want %s at %s", h, err, owner, node)
		}
	}
	grant, err := e.Acquire(t.Context(), mine, ttl)
	if err != nil {
		t.Fatal(err)
	}
	want(mine.Owner, grant.Node)
	if err := old.Release(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	want(mine.Owner, "new")
	if _, err := old.Acquire(t.Context(), theirs, ttl); err != nil {
		t.Fatal(err)
	}
	want(theirs.Owner, "old")
	if err := next.Release(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	want(theirs.Owner, "old")
}
