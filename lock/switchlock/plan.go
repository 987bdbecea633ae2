package switchlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
)

// A plan says which engines one request goes to: one engine, or both of a switch.
type plan struct {
	record Record
	names  []string
	asked  []lockengine.Engine // in this order
}

func (p plan) crosses() bool { return len(p.asked) > 1 }

// keeper is the index of the engine that the locks go to, or are in.
func (p plan) keeper() int { return len(p.asked) - 1 }

// plan returns which engines a request that begins now goes to. It is denied if its ttl is too
// long.
func (e *engine) plan(ctx context.Context, ttl time.Duration) (plan, error) {
	var names []string
	v, err := e.await(ctx, func(v view) (err error) {
		names, err = v.engines(e.now())
		return err
	})
	switch {
	case err != nil:
		return plan{}, err
	case ttl > v.known.TTL:
		return plan{}, fmt.Errorf("%w: switchlock: the ttl of %v is longer than the TTL of the record, %v", lockengine.ErrDenied, ttl, v.known.TTL)
	}
	return e.planOf(v.known, names)
}

// await returns a view that passes check. If the present one does not, it waits for two reads at
// most: the first may have begun before.
func (e *engine) await(ctx context.Context, check func(view) error) (view, error) {
	const reads = 2
	for n := 0; ; n++ {
		e.mu.Lock()
		v, read, failed := e.view, e.read, e.failed
		e.mu.Unlock()
		err := check(v)
		switch {
		case ctx.Err() != nil:
			return v, fmt.Errorf("%w: switchlock: %w", lockengine.ErrNotSent, ctx.Err())
		case err == nil:
			return v, nil
		case n == reads:
			return v, fmt.Errorf("%w: switchlock: %w: %s", lockengine.ErrNotSent, err, text(failed))
		}
		wait.Wake(e.kick)
		select {
		case <-read:
		case <-ctx.Done():
		case <-e.ctx.Done():
			return v, errClosed
		}
	}
}

func (e *engine) planOf(r Record, names []string) (plan, error) {
	if e.ctx.Err() != nil {
		return plan{}, errClosed
	}
	p := plan{record: r, names: names}
	for _, name := range names {
		engine := e.cfg.Engines[name]
		if engine == nil {
			return plan{}, fmt.Errorf("%w: switchlock: locks are kept in %q, and Config.Engines of this process has no engine of that name", lockengine.ErrDenied, name)
		}
		p.asked = append(p.asked, engine)
	}
	return p, nil
}

// text returns what a failed read says, without what the error matches: that says nothing about
// the request.
func text(err error) string {
	if err == nil {
		err = errors.New("the read succeeded, but took longer than a Lease")
	}
	return err.Error()
}
