package guard

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/lock/lockengine"
)

// locate returns where e keeps the lock on key, as far as it knows without asking a
// server.
func locate(e lockengine.Engine, key string) lockengine.Place {
	if l, ok := e.(lockengine.Locator); ok {
		return l.Locate(key)
	}
	return lockengine.Place{Slot: -1}
}

// ping returns nil if e answers, or can't say.
func ping(ctx context.Context, e lockengine.Engine) error {
	if p, ok := e.(lockengine.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

// probe returns nil if e grants locks in the place of key. An engine that is no
// Pinger only has to answer.
func probe(ctx context.Context, e lockengine.Engine, key string) error {
	if p, ok := e.(lockengine.Pinger); ok {
		return p.Probe(ctx, key)
	}
	_, err := e.Inspect(ctx, key)
	return err
}

// inspect returns who holds key now.
func inspect(ctx context.Context, e lockengine.Engine, key string) (lockengine.Holder, error) {
	h, err := e.Inspect(ctx, key)
	if err != nil {
		return lockengine.Holder{}, fmt.Errorf("inspect lock %q: %w", key, err)
	}
	return h, nil
}
