package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// Renew implements lockengine.Engine: each node gets one call. If a majority has a lock and a node does
// not, Renew acquires it there again, in the background. Such a node may have been started again,
// or may not have answered the acquire.
func (e *engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	timeout, err := e.cfg.timeoutOf(ttl)
	if err == nil && len(rs) > 0 {
		err = e.enter(ctx)
	}
	if err != nil || len(rs) == 0 {
		return slices.Repeat([]error{err}, len(rs))
	}
	defer e.running.Done()
	w := &renewal{e: e, rs: rs, ttl: ttl, timeout: timeout, start: time.Now(), errs: make([][]error, len(e.nodes))}
	w.begin()
	answers := ask(ctx, e, timeout, func(ctx context.Context, node int) renewed {
		return renewed{node, e.renewAt(ctx, node, rs, ttl)}
	})
	verdicts := w.collect(ctx, answers)
	e.running.Go(func() {
		for w.answers < len(e.nodes) {
			w.take(<-answers)
		}
		w.heal(ctx)
		w.end()
	})
	return verdicts
}

// renewAt renews locks at one node, and returns an error for each.
func (e *engine) renewAt(ctx context.Context, node int, rs []lockengine.Request, ttl time.Duration) []error {
	var errs []error
	err := call("renew", func() error {
		errs = e.nodes[node].Renew(ctx, rs, ttl)
		return nil
	})
	if err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	if len(errs) != len(rs) {
		return slices.Repeat([]error{fmt.Errorf("%d answers to %d requests", len(errs), len(rs))}, len(rs))
	}
	return errs
}

// A renewed is the answer of one node.
type renewed struct {
	node int
	errs []error // by request
}

// A renewal is one of several locks at all nodes.
type renewal struct {
	e            *engine
	rs           []lockengine.Request
	ttl, timeout time.Duration
	start        time.Time
	errs         [][]error // by node; nil = no answer yet
	answers      int
}

// begin starts to note releases of the locks, until end.
func (w *renewal) begin() {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	for _, r := range w.rs {
		w.e.begin(holdOf(r))
	}
}

func (w *renewal) end() {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	for _, r := range w.rs {
		w.e.end(holdOf(r), w.e.courses[holdOf(r)])
	}
}

func (w *renewal) take(a renewed) {
	w.errs[a.node] = a.errs
	w.answers++
}

// collect takes answers until there is a verdict on each lock, or ctx ends.
func (w *renewal) collect(ctx context.Context, answers <-chan renewed) []error {
	verdicts := make([]error, len(w.rs))
	for ended := false; ; {
		open := false
		for i := range w.rs {
			verdicts[i] = w.verdict(ctx, i)
			open = open || verdicts[i] != nil && !errors.Is(verdicts[i], lockengine.ErrNotHeld)
		}
		if !open || ended || w.answers == len(w.errs) {
			return verdicts
		}
		select {
		case a := <-answers:
			w.take(a)
		case <-ctx.Done():
			ended = true
		}
	}
}

// verdict returns the error of a renewal: what a majority says about a lock, or errSilent if more
// answers are needed.
func (w *renewal) verdict(ctx context.Context, i int) error {
	have, missing := w.count(i)
	switch {
	case have >= w.e.majority:
		return nil
	case missing >= w.e.majority:
		return lockengine.ErrNotHeld
	case w.answers < len(w.errs) && ctx.Err() == nil:
		return errSilent
	}
	errs := make([]error, len(w.errs))
	for node, said := range w.errs {
		errs[node] = errSilent
		if said != nil {
			errs[node] = said[i]
		}
	}
	return failure(ctx, "renew", lockengine.ErrNoAnswer, errs)
}

// count returns how many nodes have a lock, and how many do not.
func (w *renewal) count(i int) (have, missing int) {
	for _, said := range w.errs {
		switch {
		case said == nil:
		case said[i] == nil:
			have++
		case gone(said[i]):
			missing++
		}
	}
	return have, missing
}

// heal acquires locks again at the nodes that lack them, if a majority has them.
func (w *renewal) heal(ctx context.Context) {
	var nodes sync.WaitGroup
	for node, said := range w.errs {
		if slices.ContainsFunc(said, func(err error) bool { return errors.Is(err, lockengine.ErrNotHeld) }) {
			nodes.Go(func() { w.healAt(ctx, node) })
		}
	}
	nodes.Wait()
}

// healAt acquires one lock after the other at a node, for half a ttl: until then a majority
// certainly has them.
func (w *renewal) healAt(ctx context.Context, node int) {
	for i, r := range w.rs {
		have, _ := w.count(i)
		if have < w.e.majority || !errors.Is(w.errs[node][i], lockengine.ErrNotHeld) {
			continue
		}
		if time.Since(w.start) > w.ttl/2 || !w.acquireAgain(ctx, node, r) {
			return
		}
	}
}

// acquireAgain acquires a lock at one node, unless it was released meanwhile. It reports
// whether the node has answered.
func (w *renewal) acquireAgain(ctx context.Context, node int, r lockengine.Request) (answered bool) {
	h, votes := holdOf(r), make(chan vote, 1)
	w.e.mu.Lock()
	released := w.e.courses[h].released
	if !released {
		r := lockengine.Request{Key: r.Key, Owner: r.Owner}
		w.e.send(h, node, func() { votes <- w.e.acquireAt(ctx, node, r, w.ttl, w.timeout) })
	}
	w.e.mu.Unlock()
	if released {
		return true
	}
	v := <-votes
	return v.kind != unclear && !errors.Is(v.err, lockengine.ErrNotSent)
}
