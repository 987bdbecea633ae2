package locktest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/memlock"
)

// A bound engine prolongs only what it has acquired itself, as one that keeps locks by
// sessions does.
type bound struct {
	lockengine.Engine
	mine *sync.Map // owners
}

func (e bound) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	h, err := e.Inspect(ctx, r.Key)
	if _, mine := e.mine.Load(r.Owner); err == nil && h.Owner == r.Owner && !mine {
		return lockengine.Grant{}, &lockengine.HeldError{Key: r.Key, Holder: h}
	}
	grant, err := e.Engine.Acquire(ctx, r, ttl)
	if err == nil {
		e.mine.Store(r.Owner, true)
	}
	return grant, err
}

func (e bound) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	errs := make([]error, len(rs))
	for i, r := range rs {
		errs[i] = lockengine.ErrNotHeld
		if _, mine := e.mine.Load(r.Owner); mine {
			errs[i] = e.Engine.Renew(ctx, rs[i:i+1], ttl)[0]
		}
	}
	return errs
}

// An engine whose locks belong to it passes all checks.
func TestBound(t *testing.T) {
	locktest.Test(t, func(*testing.T) locktest.Setup {
		store := memlock.New()
		return locktest.Setup{
			Engine: bound{store, new(sync.Map)}, Other: bound{store, new(sync.Map)},
			Marks: true, Tokens: true, Nodes: true, Bound: true,
		}
	})
}
