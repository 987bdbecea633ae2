package switchlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/lock"
)

// An Adopter is an engine that acquires many locks by one request, so that those that are
// held when a switch begins are in the new engine in time.
type Adopter interface {
	// Adopt acquires each lock for its owner, as Acquire does. It returns one error per
	// request, in order.
	Adopt(ctx context.Context, rs []lock.Request, ttl time.Duration) []error
}

// Renew implements lock.Engine. While locks move, both engines have to renew a lock. What one
// of them lacks is acquired there, for the same owner.
func (e *Engine) Renew(ctx context.Context, rs []lock.Request, ttl time.Duration) []error {
	p, err := e.plan(ctx, ttl)
	if err != nil {
		e.metrics.refused(err)
		return slices.Repeat([]error{err}, len(rs))
	}
	if !p.crosses() {
		return p.asked[0].Renew(ctx, rs, ttl)
	}
	defer e.renews(rs)()
	errs := renewBoth(ctx, p.asked[0], p.asked[1], rs, ttl)
	for i, r := range rs {
		if errs[i] == nil {
			e.hasBoth(p.record.Epoch, r)
		}
	}
	return errs
}

// renews has releases wait until ended is called.
func (e *Engine) renews(rs []lock.Request) (ended func()) {
	done := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range rs {
		e.renewing[holdOf(r)] = done
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, r := range rs {
			if e.renewing[holdOf(r)] == done {
				delete(e.renewing, holdOf(r))
			}
		}
		close(done)
	}
}

func renewBoth(ctx context.Context, a, b lock.Engine, rs []lock.Request, ttl time.Duration) []error {
	var inA, inB []error
	var wg sync.WaitGroup
	wg.Go(func() { inB = b.Renew(ctx, rs, ttl) })
	inA = a.Renew(ctx, rs, ttl)
	wg.Wait()
	if len(inA) != len(rs) || len(inB) != len(rs) { // it is unknown which answer is whose
		return slices.Repeat([]error{fmt.Errorf("switchlock: %d and %d answers to %d requests", len(inA), len(inB), len(rs))}, len(rs))
	}
	gain(ctx, a, rs, ttl, inA, inB)
	gain(ctx, b, rs, ttl, inB, inA)
	errs := make([]error, len(rs))
	for i := range rs {
		errs[i] = verdict(inA[i], inB[i])
	}
	return errs
}

// verdict is what the answers of both engines say of a lock. It is lost if neither has it. What
// one of them did not renew may be renewed in time.
func verdict(a, b error) error {
	switch {
	case a == nil && b == nil:
		return nil
	case errors.Is(a, lock.ErrNotHeld) && errors.Is(b, lock.ErrNotHeld):
		return lock.ErrNotHeld
	case errors.Is(a, lock.ErrUnusable) || errors.Is(b, lock.ErrUnusable):
		return errors.Join(a, b)
	}
	return fmt.Errorf("switchlock: not renewed in both engines: %w", errors.Join(known(a), known(b)))
}

// known is err, unless that would say that the lock is not held: the other engine has it.
func known(err error) error {
	if errors.Is(err, lock.ErrNotHeld) {
		return errors.New("not held in one")
	}
	return err
}

// gain acquires in an engine the locks that it lacks and the other one has.
func gain(ctx context.Context, e lock.Engine, rs []lock.Request, ttl time.Duration, here, there []error) {
	var lacking []int
	var requests []lock.Request
	for i, r := range rs {
		if errors.Is(here[i], lock.ErrNotHeld) && there[i] == nil {
			lacking = append(lacking, i)
			requests = append(requests, lock.Request{Key: r.Key, Owner: r.Owner})
		}
	}
	if lacking == nil {
		return
	}
	errs := adopt(ctx, e, requests, ttl)
	for n, i := range lacking {
		here[i] = errs[n]
	}
}

// parallel is how many acquires are under way at once in an engine that is no Adopter.
const parallel = 64

func adopt(ctx context.Context, e lock.Engine, rs []lock.Request, ttl time.Duration) []error {
	if a, ok := e.(Adopter); ok {
		if errs := a.Adopt(ctx, rs, ttl); len(errs) == len(rs) {
			return errs
		}
	}
	errs := slices.Repeat([]error{lock.ErrNoAnswer}, len(rs)) // unless it is answered
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, r := range rs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, errs[i] = e.Acquire(ctx, r, ttl)
		})
	}
	wg.Wait()
	return errs
}
