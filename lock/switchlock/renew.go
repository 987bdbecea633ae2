package switchlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/internal/parallel"
	"github.com/belaygo/belay/lock/internal/ability"
	"github.com/belaygo/belay/lock/lockengine"
)

// Renew implements lockengine.Engine. While locks move, both engines must renew a lock. If one of them
// does not have it, Renew acquires it there for the same owner.
func (e *engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	if err := lasting.Check("switchlock", ttl); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	p, err := e.plan(ctx, ttl)
	if err != nil {
		e.metrics.refused(err)
		return slices.Repeat([]error{err}, len(rs))
	}
	if !p.crosses() {
		return p.asked[0].Renew(ctx, rs, ttl)
	}
	errs := slices.Repeat([]error{errReleasing}, len(rs))
	which, some, ended := e.renews(rs)
	defer ended()
	if len(some) == 0 {
		return errs
	}
	for n, err := range e.renewBoth(ctx, p.asked[0], p.asked[1], some, ttl) {
		errs[which[n]] = err
		if err == nil {
			e.hasBoth(p.record.Epoch, some[n])
		}
	}
	return errs
}

// errReleasing is the answer for a lock that is being released: a renewal could acquire what
// the release has just freed in one of the engines.
var errReleasing = errors.New("switchlock: not renewed: the lock is being released")

// renewals are those of one lock in both engines that are under way.
type renewals struct {
	n     int
	ended chan struct{} // closed with the last one
}

// renews returns the locks that are not being released, and which of rs they are. Their
// releases wait until ended is called.
func (e *engine) renews(rs []lockengine.Request) (which []int, some []lockengine.Request, ended func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, r := range rs {
		h := holdOf(r)
		if e.releasing[h] > 0 {
			continue
		}
		which, some = append(which, i), append(some, r)
		if e.renewing[h] == nil {
			e.renewing[h] = &renewals{ended: make(chan struct{})}
		}
		e.renewing[h].n++
	}
	return which, some, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, r := range some {
			if w := e.renewing[holdOf(r)]; w.n > 1 {
				w.n--
			} else {
				delete(e.renewing, holdOf(r))
				close(w.ended)
			}
		}
	}
}

func (e *engine) renewBoth(ctx context.Context, a, b lockengine.Engine, rs []lockengine.Request, ttl time.Duration) []error {
	var inA, inB []error
	parallel.Do(2, func(i int) {
		if i == 0 {
			inA = a.Renew(ctx, rs, ttl)
		} else {
			inB = b.Renew(ctx, rs, ttl)
		}
	})
	if len(inA) != len(rs) || len(inB) != len(rs) { // it is unknown which answer is whose
		return slices.Repeat([]error{fmt.Errorf("switchlock: renew: the engines returned %d and %d answers to %d requests", len(inA), len(inB), len(rs))}, len(rs))
	}
	e.gain(ctx, a, rs, ttl, inA, inB)
	e.gain(ctx, b, rs, ttl, inB, inA)
	errs := make([]error, len(rs))
	for i := range rs {
		errs[i] = verdict(inA[i], inB[i])
	}
	return errs
}

// verdict returns the error of a renewal from the answers of both engines. The lock is lost if
// neither has it. If only one has it, the next renewal may succeed before its deadline.
func verdict(a, b error) error {
	switch {
	case a == nil && b == nil:
		return nil
	case errors.Is(a, lockengine.ErrNotHeld) && errors.Is(b, lockengine.ErrNotHeld):
		return lockengine.ErrNotHeld
	case errors.Is(a, lockengine.ErrUnusable) || errors.Is(b, lockengine.ErrUnusable):
		return errors.Join(a, b)
	}
	return fmt.Errorf("switchlock: not renewed in both engines: %w", errors.Join(known(a), known(b)))
}

// known returns err, but an error that does not match ErrNotHeld in place of one that does: the
// other engine may have the lock.
func known(err error) error {
	if errors.Is(err, lockengine.ErrNotHeld) {
		return errors.New("not held in one of them")
	}
	return err
}

// gain acquires locks in an engine that it lacks and the other engine has.
func (e *engine) gain(ctx context.Context, in lockengine.Engine, rs []lockengine.Request, ttl time.Duration, here, there []error) {
	var lacking []int
	var requests []lockengine.Request
	for i, r := range rs {
		if errors.Is(here[i], lockengine.ErrNotHeld) && there[i] == nil {
			lacking = append(lacking, i)
			requests = append(requests, lockengine.Request{Key: r.Key, Owner: r.Owner})
		}
	}
	if lacking == nil {
		return
	}
	errs := e.adopt(ctx, in, requests, ttl)
	for n, i := range lacking {
		here[i] = errs[n]
	}
}

// adopting is how many acquires are under way at once in an engine that is no Adopter.
const adopting = 64

func (e *engine) adopt(ctx context.Context, in lockengine.Engine, rs []lockengine.Request, ttl time.Duration) []error {
	if a, ok := in.(ability.Adopter); ok {
		if errs := a.Adopt(ctx, rs, ttl); len(errs) == len(rs) {
			return errs
		}
	}
	errs := slices.Repeat([]error{lockengine.ErrNoAnswer}, len(rs)) // until an answer replaces it
	slots := make(chan struct{}, adopting)
	var wg sync.WaitGroup
	for i, r := range rs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := background.Do(e.cfg.Logger, "acquire a lock in the other engine", func() error {
				_, err := in.Acquire(ctx, r, ttl)
				return err
			})
			if !errors.Is(err, background.ErrPanic) {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errs
}
