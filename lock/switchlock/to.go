package switchlock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
)

// A Change is what Switch and Engine.To are to do.
type Change struct {
	// To is the engine that is to keep the locks. While a switch is not over, that can be
	// the engine that they come from: they go back.
	To string
	// GoneSince says that the engine that keeps the locks now has granted and renewed none
	// since then, and will not before the record is settled: it is switched off. So no lock in
	// it can last for longer than Record.TTL from then, and processes need the new engine alone
	// that soon. If that is not true, or the engine is back before the record is settled, a lock
	// may have two holders. The zero Time says nothing.
	GoneSince time.Time
	// By is who wants it, for people.
	By string
}

// Switch writes the record of a change, and returns it. It is for tools that have no engines;
// use Engine.To where there are. It does not wait until the switch is over.
//
// It knows neither whether the engine is there, nor its tokens: these grow beyond the switch as
// far as the clocks of both engines agree, if they are taken from clocks, as those of redislock
// and sqllock.
func Switch(ctx context.Context, s Source, c Change) (Record, error) {
	return swap(ctx, s, c.next)
}

// To writes the record of a change, and returns it. It does not wait until the switch is over:
// see State. It changes nothing if the engine already keeps the locks. It returns an error if
// that grants none, and one that matches ErrUnsettled if it is a third one.
func (e *Engine) To(ctx context.Context, c Change) (Record, error) {
	engine := e.cfg.Engines[c.To]
	if engine == nil {
		return Record{}, fmt.Errorf("switchlock: To is %q; this process has %q", c.To, e.cfg.names())
	}
	if _, err := e.await(ctx, view.check); err != nil { // a process that has just begun makes the first record
		return Record{}, err
	}
	token, err := try(ctx, engine)
	if err != nil {
		return Record{}, fmt.Errorf("switchlock: %s grants no lock: %w", c.To, err)
	}
	r, err := swap(ctx, e.cfg.Source, func(r Record) (Record, error) {
		next, err := c.next(r)
		if err != nil || next == r {
			return next, err
		}
		next.Base, err = base(r.Base, e.newest(ctx, r.To), token)
		return next, err
	})
	if err == nil {
		wait.Wake(e.kick)
	}
	return r, err
}

// Retime writes a record with another Lease and TTL: first make TTL longer, then that of the
// Lockers. It returns an error that matches ErrUnsettled while a switch is not over. No lock
// moves, but there can be no switch until it is over.
func (e *Engine) Retime(ctx context.Context, lease, ttl time.Duration) (Record, error) {
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
	switch {
	case c.To == "" || len(c.To) > maxName:
		return r, fmt.Errorf("switchlock: the name %q has not 1 to %d bytes", c.To, maxName)
	case len(c.By) > maxBy:
		return r, fmt.Errorf("switchlock: Change.By has %d bytes, at most %d are kept", len(c.By), maxBy)
	case r.To == c.To && !r.Settled && !c.GoneSince.IsZero():
		return r, fmt.Errorf("%w: locks go to %s already, and it can't be made shorter", ErrUnsettled, c.To)
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

// swap replaces the record by what next makes of it.
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

// base is what tokens get, so that those of the engine that is at token follow the newest of
// the one before.
func base(before, newest, token int64) (int64, error) {
	if newest > math.MaxInt64/2-before {
		return 0, errors.New("switchlock: tokens are used up")
	}
	return before + newest - token, nil
}

// newest is as great as any token of an engine. One that does not answer may have granted
// locks since this process has seen one: as many as a counter can in any case, or by its
// clock.
func (e *Engine) newest(ctx context.Context, name string) int64 {
	if engine := e.cfg.Engines[name]; engine != nil {
		if token, err := try(ctx, engine); err == nil {
			return token
		}
	}
	const manyGrants = 1 << 50
	e.mu.Lock()
	seen := e.seen[name]
	e.mu.Unlock()
	clock := time.Now().UnixMicro() * 1024
	if seen == 0 || seen > clock/2 {
		return max(seen, clock)
	}
	return seen + manyGrants
}

// try acquires and releases a lock that nobody else wants, and returns its token.
func try(ctx context.Context, e lock.Engine) (token int64, err error) {
	const timeout = time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := lock.Request{Key: "belay:switch:" + strconv.FormatInt(time.Now().UnixNano(), 36), Owner: "switch:1"}
	g, err := e.Acquire(ctx, r, timeout)
	if err != nil {
		return 0, err
	}
	return g.Token, e.Release(ctx, r)
}
