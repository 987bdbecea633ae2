package switchlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
)

// A plan is what one request has to ask: one engine, or both of a switch.
type plan struct {
	record Record
	names  []string
	asked  []lock.Engine // in this order
}

func (p plan) crosses() bool { return len(p.asked) > 1 }

// keeper is the index of the engine that the locks go to, or are in.
func (p plan) keeper() int { return len(p.asked) - 1 }

// plan returns what a request that begins now has to ask, which is for a lock of ttl.
func (e *Engine) plan(ctx context.Context, ttl time.Duration) (plan, error) {
	var names []string
	v, err := e.await(ctx, func(v view) (err error) {
		names, err = v.engines(e.now())
		return err
	})
	switch {
	case err != nil:
		return plan{}, err
	case ttl > v.known.TTL:
		return plan{}, fmt.Errorf("%w: switchlock: the ttl of %v is longer than that of the record, %v", lock.ErrDenied, ttl, v.known.TTL)
	}
	return e.planOf(v.known, names)
}

// await returns a view that is good for a request. If the one at hand is not, it waits for
// two reads at most: one may have begun before.
func (e *Engine) await(ctx context.Context, check func(view) error) (view, error) {
	const reads = 2
	for n := 0; ; n++ {
		e.mu.Lock()
		v, read, failed := e.view, e.read, e.failed
		e.mu.Unlock()
		err := check(v)
		switch {
		case ctx.Err() != nil:
			return v, fmt.Errorf("%w: switchlock: %w", lock.ErrNotSent, ctx.Err())
		case err == nil:
			return v, nil
		case n == reads:
			return v, fmt.Errorf("%w: switchlock: %w: %s", lock.ErrNotSent, err, text(failed))
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

func (e *Engine) planOf(r Record, names []string) (plan, error) {
	if e.ctx.Err() != nil {
		return plan{}, errClosed
	}
	p := plan{record: r, names: names}
	for _, name := range names {
		engine := e.cfg.Engines[name]
		if engine == nil {
			return plan{}, fmt.Errorf("%w: switchlock: locks are kept in %q, which this process has no engine for", lock.ErrDenied, name)
		}
		p.asked = append(p.asked, engine)
	}
	return p, nil
}

// text of an error that proves nothing to those who are told of it.
func text(err error) string {
	if err == nil {
		err = errors.New("it was read, and was too old when it came")
	}
	return err.Error()
}
