package switchlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
)

// A Change describes a switch, for Switch and Engine.To.
type Change struct {
	// To is the name of the engine that is to keep the locks. Until a switch is settled, it
	// can only be the engine that the locks come from, or the one that they move to already.
	To string
	// GoneSince says since when the engine that keeps the locks now is switched off. Then no
	// lock in it lasts for longer than Record.TTL after GoneSince, and locks are granted in
	// the new engine when that has passed, which may be at once.
	//
	// Set it only if that engine has granted and renewed no lock since then, and stays off
	// until the record is settled. Otherwise a lock may have two holders. The zero Time means
	// that the engine is not known to be off.
	GoneSince time.Time
	// By says who makes the switch, in at most 255 bytes of UTF-8. It is for people, and has no effect.
	By string
}

// Switch begins a switch: it writes a new record to the source, and returns that. It is for
// tools that have no engines; services use Engine.To. It does not wait until the switch is over:
// read the source until Record.Settled is true. Its errors are those of Engine.To.
//
// Switch does not check that the engine exists or works, nor that the old one is gone. It can't adjust tokens either: they
// keep growing only between engines that take tokens from clocks, as redislock and sqllock do,
// and as far as these clocks agree.
func Switch(ctx context.Context, s Source, c Change) (Record, error) {
	return swap(ctx, s, c.next)
}

// To tries the new engine before it writes the record.
func (e *engine) To(ctx context.Context, c Change) (Record, error) {
	engine := e.cfg.Engines[c.To]
	if engine == nil {
		return Record{}, fmt.Errorf("switchlock: Change.To is %q; Config.Engines has %q", c.To, e.cfg.names())
	}
	v, err := e.await(ctx, view.check) // a process that has just started writes the first record
	if err != nil {
		return Record{}, err
	}
	token, err, unreleased := try(ctx, engine, v.known.TTL)
	if err = cmp.Or(err, unreleased); err != nil {
		return Record{}, fmt.Errorf("switchlock: %s grants no lock, so locks stay where they are: %w", c.To, err)
	}
	r, err := swap(ctx, e.cfg.Source, func(r Record) (Record, error) {
		next, err := c.next(r)
		if err != nil || next == r {
			return next, err
		}
		newest, answer := e.newest(ctx, r)
		if answer != "" && !c.GoneSince.IsZero() { // locks would have two holders
			return r, fmt.Errorf("switchlock: %s is not gone, it %s: switch it off, or leave out GoneSince", r.To, answer)
		}
		next.Base, err = base(r.Base, newest+lead(r.Lease, token), token)
		return next, err
	})
	if err == nil {
		wait.Wake(e.kick)
	}
	return r, err
}

// Retime writes a record by which no lock moves.
func (e *engine) Retime(ctx context.Context, lease, ttl time.Duration) (Record, error) {
	if err := checkTimes(lease, ttl); err != nil {
		return Record{}, err
	}
	r, err := swap(ctx, e.cfg.Source, func(r Record) (Record, error) { return r.retime(lease, ttl) })
	if err == nil {
		wait.Wake(e.kick)
	}
	return r, err
}

// maxBy is the longest Change.By, in bytes.
const maxBy = 255

func (c Change) next(r Record) (Record, error) {
	if err := checkName(c.To); err != nil {
		return r, err
	}
	switch {
	case !utf8.ValidString(c.By):
		return r, fmt.Errorf("switchlock: Change.By %q is not UTF-8", c.By)
	case len(c.By) > maxBy:
		return r, fmt.Errorf("switchlock: Change.By has %d bytes, want at most %d", len(c.By), maxBy)
	case r.To == c.To && !r.Settled && !c.GoneSince.IsZero():
		return r, fmt.Errorf("%w: locks move to %s already, and Change.GoneSince can't shorten that", ErrUnsettled, c.To)
	}
	next, err := r.to(c.To)
	if err != nil || next == r {
		return next, err
	}
	next.By = c.By
	if !c.GoneSince.IsZero() {
		left := r.TTL + slack(r.TTL) - time.Since(c.GoneSince)
		next.Cross = min(next.Cross, max(0, left))
	}
	return next, nil
}

// swap replaces the record by what next returns for it, if that differs.
func swap(ctx context.Context, s Source, next func(Record) (Record, error)) (Record, error) {
	const attempts = 3
	for n := 1; ; n++ {
		r, err := s.Read(ctx)
		if err != nil {
			return Record{}, fmt.Errorf("switchlock: read the record: %w", err)
		}
		wanted, err := next(r)
		if err != nil || wanted == r {
			return r, err
		}
		err = s.Swap(ctx, r, wanted)
		switch {
		case err == nil:
			return wanted, nil
		case n < attempts && errors.Is(err, ErrChanged): // a switch was settled
			continue
		}
		return Record{}, fmt.Errorf("switchlock: write the record: %w", err)
	}
}

// base returns what is added to the tokens of the new engine, which is at token, so that they
// follow the newest token of the old engine. before is the base of the old engine.
func base(before, newest, token int64) (int64, error) {
	if newest > math.MaxInt64/2-before {
		return 0, errors.New("switchlock: tokens are used up")
	}
	return before + newest - token, nil
}

// newest returns a token that no lock of the engine that keeps the locks exceeds by now, and what that
// engine has answered, if anything. One that grants no lock may have granted more since this process saw
// a token of it. So newest adds more to a counter than it can have granted, and takes the time for a clock.
func (e *engine) newest(ctx context.Context, r Record) (token int64, answer string) {
	if engine := e.cfg.Engines[r.To]; engine != nil {
		token, err, _ := try(ctx, engine, r.TTL)
		if err == nil {
			return token, "grants locks"
		}
		answer = answerIn(err)
	}
	const manyGrants = 1 << 50
	e.mu.Lock()
	seen := e.seen[r.To]
	e.mu.Unlock()
	if seen == 0 || isTime(seen) {
		return max(seen, perMicrosecond*time.Now().UnixMicro()), answer
	}
	return seen + manyGrants, answer
}

// answerIn returns the answer of an engine in the error of an acquire; "" if it may be switched off. One
// that denies or refuses the acquire, or can't have the lock's name, may renew the locks that it has granted.
func answerIn(err error) string {
	for _, answer := range []error{lockengine.ErrDenied, lockengine.ErrRefused, lockengine.ErrUnusable} {
		if errors.Is(err, answer) {
			return "answers: " + err.Error()
		}
	}
	return ""
}

// perMicrosecond is by how much a token grows in a microsecond if it is a time.
const perMicrosecond = 1024

// isTime reports whether a token is a time, and no count.
func isTime(token int64) bool { return token > perMicrosecond/2*time.Now().UnixMicro() }

// lead is by how much the tokens of the new engine, which is at token, go ahead of those of the
// old one. Processes that have not read the record grant locks in the old engine alone for up to
// a lease, and its tokens grow meanwhile, as a clock at most. If those of the new engine are
// times, they grow as fast. If they are counts, they would need hours to catch up.
func lead(lease time.Duration, token int64) int64 {
	if isTime(token) {
		return 0
	}
	return perMicrosecond * (lease + slack(lease)).Microseconds()
}

// try acquires and releases a lock of a key that nobody uses, and returns its token. The ttl is the
// longest of a lock: an engine may deny or refuse what other ttls it would grant.
func try(ctx context.Context, e lockengine.Engine, ttl time.Duration) (token int64, ungranted, unreleased error) {
	const timeout = time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := lockengine.Request{Key: "belay:switch:" + strconv.FormatInt(time.Now().UnixNano(), 36), Owner: "switch:1"}
	g, err := e.Acquire(ctx, r, ttl)
	if err != nil {
		return 0, err, nil
	}
	return g.Token, nil, e.Release(ctx, r)
}
