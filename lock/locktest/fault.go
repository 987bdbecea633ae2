package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// How long callers wait for a store that is cut off, and for one that is not, which may have to
// be dialled on a busy machine.
const (
	patience = 200 * time.Millisecond
	dialling = 3 * time.Second
)

var faults = []Fault{RefuseDials, SwallowRequests, SwallowAnswers, CutAfterRequest}

// notSentIsTrue cuts the engine off in each way while callers acquire and release.
// Afterwards the store shows whether what they were told is true.
func notSentIsTrue(c *check) {
	const rounds, callers = 5, 10
	for _, f := range faults {
		for range rounds {
			c.cutOff(f, callers)
		}
	}
}

// cutOff has callers acquire and release beside each other while the engine is cut off,
// each a key of its own.
func (c *check) cutOff(f Fault, callers int) {
	c.Helper()
	begun := time.Now()
	free, held := make([]lockengine.Request, callers), make([]lockengine.Request, callers)
	taken, released := make([]error, callers), make([]error, callers)
	for i := range callers {
		free[i] = c.request(newKey())
		c.eventually("a lock is held", func() bool { // a connection may still end of the last fault
			held[i] = c.request(newKey())
			_, err := c.Engine.Acquire(c.ctx(), held[i], longTTL)
			return err == nil
		})
	}
	c.connect(2 * callers) // what is to break
	heal := c.Fault(f)
	c.together(2*callers, patience, func(ctx context.Context, i int) {
		if i%2 == 0 {
			_, taken[i/2] = c.Engine.Acquire(ctx, free[i/2], longTTL)
		} else {
			released[i/2] = c.Engine.Release(ctx, held[i/2])
		}
	})
	heal()
	c.connect(1)
	for i := range callers {
		c.wantTrue(f, "Acquire", free[i], taken[i], nothingTaken(taken[i]))
		c.wantTrue(f, "Release", held[i], released[i], released[i] == nil || errors.Is(released[i], lockengine.ErrNotHeld))
		holder, err := c.Other.Inspect(c.ctx(), held[i].Key)
		expired := time.Since(begun) >= longTTL
		if err != nil || notSent(released[i]) && holder.Owner == "" && !expired {
			c.Errorf("%s: Release said %v, and nobody has the key: %v", f, released[i], err)
		}
		_ = c.Other.Release(c.ctx(), free[i])
		_ = c.Other.Release(c.ctx(), held[i])
	}
}

// connect waits until the engine answers as many calls at once.
func (c *check) connect(calls int) {
	c.Helper()
	c.eventually("connected", func() bool {
		errs := make([]error, calls)
		c.together(calls, dialling, func(ctx context.Context, i int) {
			_, errs[i] = c.Engine.Inspect(ctx, newKey())
		})
		return errors.Join(errs...) == nil
	})
}

// together runs calls beside each other, each for timeout at most.
func (c *check) together(calls int, timeout time.Duration, call func(ctx context.Context, i int)) {
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			call(ctx, i)
		})
	}
	wg.Wait()
}

// wantTrue checks that the store does not have the lock of r if the engine said so.
func (c *check) wantTrue(f Fault, call string, r lockengine.Request, said error, gone bool) {
	c.Helper()
	if !gone {
		return
	}
	if holder, err := c.Other.Inspect(c.ctx(), r.Key); err != nil || holder.Owner != "" {
		c.Errorf("%s: %s said %v, and the key is held by %q: %v", f, call, said, holder.Owner, err)
	}
}

// nothingTaken reports whether the error of an Acquire says that nothing was taken.
func nothingTaken(err error) bool {
	_, held := errors.AsType[*lockengine.HeldError](err)
	return held || notSent(err) || (errors.Is(err, lockengine.ErrRefused) || errors.Is(err, lockengine.ErrUnusable)) && !errors.Is(err, lockengine.ErrNoAnswer)
}

func notSent(err error) bool {
	return errors.Is(err, lockengine.ErrNotSent) && !errors.Is(err, lockengine.ErrNoAnswer)
}

// answersInTime calls each method while no answer comes: it returns nevertheless, not
// long after its context has ended.
func answersInTime(c *check) {
	c.acquire(c.Engine, c.mine, longTTL)
	c.connect(1)
	defer c.Fault(SwallowAnswers)()
	for name, call := range c.calls() {
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		returned := make(chan error, 1)
		go func() { returned <- call(ctx) }()
		select {
		case err := <-returned:
			if err == nil {
				c.Errorf("%s succeeded without an answer", name)
			}
		case <-time.After(limit): // for a busy machine
			c.Errorf("%s does not return when its context has ended", name)
		}
		cancel()
	}
}

// calls are the methods that ask the store.
func (c *check) calls() map[string]func(context.Context) error {
	calls := map[string]func(context.Context) error{
		"Acquire": func(ctx context.Context) error {
			_, err := c.Engine.Acquire(ctx, c.theirs, longTTL)
			return err
		},
		"Renew": func(ctx context.Context) error {
			return c.Engine.Renew(ctx, []lockengine.Request{c.mine}, longTTL)[0]
		},
		"Release": func(ctx context.Context) error { return c.Engine.Release(ctx, c.mine) },
		"Inspect": func(ctx context.Context) error {
			_, err := c.Engine.Inspect(ctx, c.key)
			return err
		},
	}
	if p, ok := c.Engine.(lockengine.Pinger); ok {
		calls["Ping"] = p.Ping
		calls["Probe"] = func(ctx context.Context) error { return p.Probe(ctx, c.key) }
	}
	return calls
}
