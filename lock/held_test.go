package lock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// A caller that another one of its process keeps from a key learns that: the engine, which
// may have lost the key, was not asked.
func TestHeldErrorOfThisProcess(t *testing.T) {
	l := newLocker(t, newFaults(), lock.Config{})
	first := acquire(t, l, "k")
	_, err := l.TryAcquire(t.Context(), "k")
	held, ok := errors.AsType[*lockengine.HeldError](err)
	if !ok || !held.Local || !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("err = %v, want a HeldError of this process that matches ErrHeld", err)
	}
	if want := "is held by another caller of this process, " + first.Grant().Owner; !strings.Contains(err.Error(), want) {
		t.Errorf("text is %v\nwant      %s", err, want)
	}
	release(t, first)
}

// One that holds the key by a Local acquire is of this process, too.
func TestHeldErrorOfALocalHolder(t *testing.T) {
	l := newLocker(t, newFaults(), lock.Config{})
	first, err := l.Acquire(t.Context(), "k", lock.Local())
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.TryAcquire(t.Context(), "k")
	if held, ok := errors.AsType[*lockengine.HeldError](err); !ok || !held.Local || err.Error() != `lock: "k" is held by another caller of this process` {
		t.Errorf("err = %v, want a HeldError of this process", err)
	}
	release(t, first)
}
