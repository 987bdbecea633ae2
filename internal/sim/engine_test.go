package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

const node = "redis:6379"

// A server keeps locks as one Redis does. Only the scheduler calls it.
type server struct {
	w        *world
	state    locks
	older    []locks // before the last changes: what a replica may have
	token    int64
	down     bool // it refuses connections
	full     bool // it answers, and rejects what it would have to keep
	watchers []*watcher
}

type locks struct {
	held  map[string]entry
	marks map[string]time.Time
}

type entry struct {
	owner   string
	expires time.Time
}

type watcher struct {
	key  string
	wake func()
}

func newServer(w *world) *server {
	return &server{w: w, state: locks{held: map[string]entry{}, marks: map[string]time.Time{}}}
}

func (s *server) fails(write bool) error {
	switch {
	case s.down:
		return fmt.Errorf("%w: connection refused", lockengine.ErrNotSent)
	case s.full && write:
		return fmt.Errorf("%w: OOM command not allowed", lockengine.ErrRefused)
	}
	return nil
}

func (s *server) acquire(p *process, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if err := s.fails(true); err != nil {
		return lockengine.Grant{}, err
	}
	if until, ok := s.state.marks[r.Key]; ok && r.UnlessMarked && time.Now().Before(until) {
		return lockengine.Grant{}, lockengine.ErrMarked
	}
	e, held := s.state.held[r.Key]
	if held && e.owner != r.Owner {
		return lockengine.Grant{}, &lockengine.HeldError{Key: r.Key, Holder: s.holder(r.Key)}
	}
	s.change()
	s.state.held[r.Key] = entry{r.Owner, time.Now().Add(ttl)}
	s.token += 1024
	s.w.history.granted(p, r)
	return lockengine.Grant{Token: s.token, Place: s.place(r.Key)}, nil
}

func (s *server) renew(rs []lockengine.Request, ttl time.Duration) []error {
	errs := make([]error, len(rs))
	for i, r := range rs {
		switch e := s.state.held[r.Key]; {
		case s.fails(false) != nil:
			errs[i] = s.fails(false)
			s.w.history.unrenewed(r.Owner)
		case e.owner != r.Owner:
			errs[i] = lockengine.ErrNotHeld
		default:
			s.state.held[r.Key] = entry{r.Owner, time.Now().Add(ttl)}
		}
	}
	return errs
}

func (s *server) release(r lockengine.Request) error {
	if err := s.fails(false); err != nil {
		return err
	}
	if r.Mark > 0 {
		s.state.marks[r.Key] = time.Now().Add(r.Mark)
	}
	if s.state.held[r.Key].owner != r.Owner {
		return lockengine.ErrNotHeld
	}
	s.change()
	s.free(r.Key, "released")
	return nil
}

func (s *server) holder(key string) lockengine.Holder {
	e, ok := s.state.held[key]
	if !ok {
		return lockengine.Holder{Place: s.place(key)}
	}
	return lockengine.Holder{Owner: e.owner, TTL: time.Until(e.expires), Place: s.place(key)}
}

func (s *server) place(key string) lockengine.Place {
	return lockengine.Place{Node: node, Slot: -1, Entry: key}
}

// change keeps the state as it was, for a failover.
func (s *server) change() {
	s.older = append(s.older, locks{maps.Clone(s.state.held), maps.Clone(s.state.marks)})
	s.older = s.older[max(0, len(s.older)-3):]
}

// free removes a lock, and notifies those that wait for it.
func (s *server) free(key, why string) {
	s.w.history.freed(s.state.held[key].owner, why)
	delete(s.state.held, key)
	s.w.mu.Lock()
	watchers := slices.Clone(s.watchers)
	s.w.mu.Unlock()
	for _, x := range watchers {
		if x.key == key {
			x.wake()
		}
	}
}

// expire removes the locks whose time is up.
func (s *server) expire() {
	for _, key := range slices.Sorted(maps.Keys(s.state.held)) {
		if !time.Now().Before(s.state.held[key].expires) {
			s.free(key, "expired")
		}
	}
}

// wipe loses a lock that somebody has.
func (s *server) wipe(key string) {
	if _, ok := s.state.held[key]; ok {
		s.free(key, "lost")
	}
}

// failOver makes a replica the master that lacks the last changes.
func (s *server) failOver(back int) {
	if back >= len(s.older) {
		return
	}
	was := s.state.held
	s.state = s.older[len(s.older)-1-back]
	s.older = nil
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if s.state.held[key].owner != was[key].owner {
			s.w.history.freed(was[key].owner, "lost")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.state.held)) {
		if s.state.held[key].owner != was[key].owner {
			s.w.history.regained(s.state.held[key].owner)
		}
	}
	s.expire()
}

// An engine is a server as one process reaches it.
type engine struct {
	w *world
	p *process
}

var (
	_ lockengine.Locator = engine{}
	_ lockengine.Pinger  = engine{}
	_ lockengine.Waker   = engine{}
)

// call has the scheduler execute run. The error says what became of the request.
func (e engine) call(ctx context.Context, text string, run func() error, asks ...lockengine.Request) (err error) {
	c := &call{process: e.p, text: text, ctx: ctx, cuts: true, asks: asks}
	c.op, c.actor = e.p.actor(ctx, "locker")
	c.run = func() {
		if err = run(); c.op != nil && errors.Is(err, lockengine.ErrNotSent) {
			c.op.missed(text)
		}
		c.err = err
	}
	if f := e.w.gate.pass(c); f == executed {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", lockengine.ErrNoAnswer, ctx.Err())
	}
	return fmt.Errorf("%w: the connection broke", lockengine.ErrNoAnswer)
}

func (e engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (g lockengine.Grant, err error) {
	if o, _ := ctx.Value(opKey{}).(*op); o != nil {
		e.w.history.asked(o, r)
	}
	var answer lockengine.Grant
	err = e.call(ctx, "ACQUIRE "+r.Key, func() (err error) {
		answer, err = e.w.server.acquire(e.p, r, ttl)
		return err
	}, r)
	if err != nil {
		return lockengine.Grant{}, err
	}
	e.w.history.answered(r.Owner)
	return answer, nil
}

func (e engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	text := "RENEW"
	for _, r := range rs {
		text += " " + r.Key
	}
	var answer []error
	if err := e.call(ctx, text, func() error { answer = e.w.server.renew(rs, ttl); return nil }, rs...); err != nil {
		for _, r := range rs {
			e.w.history.unrenewed(r.Owner)
		}
		return slices.Repeat([]error{err}, len(rs))
	}
	return answer
}

func (e engine) Release(ctx context.Context, r lockengine.Request) error {
	err := e.call(ctx, "RELEASE "+r.Key, func() error { return e.w.server.release(r) }, r)
	e.w.history.astray(r.Owner, errors.Is(err, lockengine.ErrNoAnswer))
	return err
}

func (e engine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	var answer lockengine.Holder
	err := e.call(ctx, "INSPECT "+key, func() error {
		answer = e.w.server.holder(key)
		if err := e.w.server.fails(false); err != nil {
			return err
		}
		if o, _ := ctx.Value(opKey{}).(*op); o != nil {
			o.look(key, e.w.step)
		}
		return nil
	})
	if err != nil {
		return lockengine.Holder{}, err
	}
	return answer, nil
}

func (e engine) Close(context.Context) error { return nil }

func (e engine) Locate(key string) lockengine.Place { return e.w.server.place(key) }

func (e engine) Ping(ctx context.Context) error { return e.Probe(ctx, "") }

func (e engine) Probe(ctx context.Context, _ string) error {
	return e.call(ctx, "PROBE", func() error { return e.w.server.fails(true) })
}

func (e engine) Watch(_ context.Context, key string, wake func()) (stop func(), err error) {
	s, x := e.w.server, &watcher{key, wake}
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	s.watchers = append(s.watchers, x)
	return func() {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		s.watchers = slices.DeleteFunc(s.watchers, func(y *watcher) bool { return x == y })
	}, nil
}
