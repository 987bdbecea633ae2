package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
)

// A scriptedEngine grants everything and renews as its verdict says.
type scriptedEngine struct {
	lock.Engine
	verdict error
}

func (*scriptedEngine) Acquire(context.Context, lock.Request, time.Duration) (lock.Grant, error) {
	return lock.Grant{}, nil
}

func (e *scriptedEngine) Renew(_ context.Context, hs []lock.Request, _ time.Duration) []error {
	errs := make([]error, len(hs))
	for i := range errs {
		errs[i] = e.verdict
	}
	return errs
}

func TestRenewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 30 * time.Second
		engine := new(scriptedEngine)
		times := newRenewTimes(engine, []string{"a", "b"})
		ctx := t.Context()
		holds := []lock.Request{{Key: "a", Owner: "a"}, {Key: "b", Owner: "b"}}
		for _, h := range holds {
			if _, err := times.Acquire(ctx, h, ttl); err != nil {
				t.Fatal(err)
			}
		}
		renew := func(after time.Duration, hs ...lock.Request) {
			<-time.After(after)
			times.Renew(ctx, hs, ttl)
		}

		renew(9*time.Second, holds...)
		if got := times.worst(); got != 0 {
			t.Errorf("lateness %v after a renewal in time, want 0", got)
		}
		renew(12*time.Second, holds[0])
		if got := times.worst(); got != 2*time.Second {
			t.Errorf("lateness %v, want 2 s: due after 10 s, renewed after 12 s", got)
		}
		engine.verdict = errors.New("no answer")
		renew(0, holds[0])
		if n, failed := times.renewed.Load(), times.failed.Load(); n != 3 || failed != 1 {
			t.Errorf("%d renewed, %d failed; want 3 and 1", n, failed)
		}
		<-time.After(3 * time.Second)
		if got := times.worst(); got != 5*time.Second {
			t.Errorf("lateness %v, want 5 s: the other is overdue since 5 s", got)
		}
	})
}
