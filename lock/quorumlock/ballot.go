package quorumlock

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// A ballot is one acquire at all nodes.
type ballot struct {
	e            *engine
	r            lockengine.Request
	ttl, timeout time.Duration
	votes        []vote // by node
	arrived      chan vote
	waiting      int     // how many votes are to arrive
	course       *course // that of its hold, until close
}

func newBallot(e *engine, r lockengine.Request, ttl, timeout time.Duration) *ballot {
	n := len(e.nodes)
	b := &ballot{e: e, r: r, ttl: ttl, timeout: timeout, votes: make([]vote, n), arrived: make(chan vote, n)}
	e.mu.Lock()
	defer e.mu.Unlock()
	b.course = e.begin(holdOf(r))
	return b
}

// close ends the ballot. What its nodes answer later is for giveUp.
func (b *ballot) close() {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	b.e.end(holdOf(b.r), b.course)
}

func (b *ballot) unasked(v vote) bool       { return v.kind == unasked }
func (b *ballot) heldByAnother(v vote) bool { return v.kind == held }

// ask sends the acquire to the nodes whose last vote is such.
func (b *ballot) ask(ctx context.Context, such func(vote) bool) {
	e, h := b.e, holdOf(b.r)
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, v := range b.votes {
		if !such(v) {
			continue
		}
		b.votes[i] = vote{node: i, kind: waiting}
		b.waiting++
		e.send(h, i, func() { b.arrived <- e.acquireAt(ctx, i, b.r, b.ttl, b.timeout) })
		b.course.released, b.course.ballots[i] = false, b
	}
}

// collect takes votes until they are decided, or ctx ends.
func (b *ballot) collect(ctx context.Context) {
	for b.waiting > 0 && !b.decided() {
		select {
		case v := <-b.arrived:
			b.votes[v.node] = v
			b.waiting--
		case <-ctx.Done():
			return
		}
	}
}

// decided reports whether further votes can't change what becomes of the acquire: this owner or
// another one has a majority, or the key is marked and a majority has answered.
func (b *ballot) decided() bool {
	_, n := b.holder()
	return b.won() || n >= b.e.majority || b.isMarked() && b.waiting < b.e.majority
}

func (b *ballot) count(k kind) (n int) {
	for _, v := range b.votes {
		if v.kind == k {
			n++
		}
	}
	return n
}

func (b *ballot) won() bool { return b.count(granted) >= b.e.majority && !b.isMarked() }

func (b *ballot) isMarked() bool {
	for _, v := range b.votes {
		if v.isMarked() {
			return true
		}
	}
	return false
}

// answered reports whether a majority of nodes has granted the lock or named its holder.
func (b *ballot) answered() bool { return b.count(granted)+b.count(held) >= b.e.majority }

// holder returns the owner that most nodes name, and how many these are.
func (b *ballot) holder() (lockengine.Holder, int) {
	var named []lockengine.Holder
	for _, v := range b.votes {
		if v.kind == held {
			named = append(named, v.holder)
		}
	}
	h, n := most(named, b.e.majority)
	h.Place = b.e.place()
	return h, n
}

// leads reports whether the votes are split, and this owner has the first of the nodes that work.
func (b *ballot) leads() bool {
	if b.decided() || b.isMarked() || !b.answered() {
		return false
	}
	for _, v := range b.votes {
		switch v.kind {
		case granted:
			return true
		case held:
			return false
		}
	}
	return false
}

// token returns the greatest token that was granted, so that tokens grow if the nodes' clocks
// agree.
func (b *ballot) token() (token int64) {
	for _, v := range b.votes {
		if v.kind == granted {
			token = max(token, v.token)
		}
	}
	return token
}

// concede releases what was granted, and returns why the lock was not acquired. It does not wait
// for nodes that have not answered: what they grant later is released in the background.
func (b *ballot) concede(ctx context.Context) error {
	if b.waiting > 0 {
		b.e.mu.Lock()
		b.e.begin(holdOf(b.r))
		b.e.mu.Unlock()
		n := b.waiting
		b.e.running.Go(func() { b.giveUp(ctx, n) })
	}
	released := make(chan error, len(b.votes))
	left, releases := b.waiting, 0
	for _, v := range b.votes {
		switch v.kind {
		case unclear: // whatever the release says, the acquire may be executed after it
			left++
			b.release(ctx, v.node, func(error) {})
		case granted, abstained:
			releases++
			b.release(ctx, v.node, func(err error) { released <- err })
		}
	}
	for range releases {
		if err := <-released; err != nil && !gone(err) {
			left++
		}
	}
	return b.err(ctx, left)
}

// giveUp releases what n nodes grant late, unless the same owner has asked a node again since: the
// lock there is that ballot's, which has it or releases it.
func (b *ballot) giveUp(ctx context.Context, n int) {
	e, c := b.e, b.course
	for range n {
		v := <-b.arrived
		e.mu.Lock()
		if v.mayHold() && c.ballots[v.node] == b {
			b.send(ctx, v.node, func(error) {})
		}
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(holdOf(b.r), c)
}

// release releases the lock at one node.
func (b *ballot) release(ctx context.Context, node int, then func(error)) {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	b.send(ctx, node, then)
}

// send sends a release. The caller holds e.mu.
func (b *ballot) send(ctx context.Context, node int, then func(error)) {
	r := lockengine.Request{Key: b.r.Key, Owner: b.r.Owner, Quiet: true}
	b.e.send(holdOf(r), node, func() { then(b.e.releaseAt(ctx, node, r)) })
}

// gone reports whether the answer to a release or a renewal says that the owner does not
// have the lock.
func gone(err error) bool {
	return errors.Is(err, lockengine.ErrNotHeld) || errors.Is(err, lockengine.ErrUnusable)
}
