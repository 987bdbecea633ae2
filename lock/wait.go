package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// How long the one inside a gate sleeps before it asks again: without an alarm,
// and with one, which may be missed.
const (
	pollMin, pollMax   = 10 * time.Millisecond, 50 * time.Millisecond
	floorMin, floorMax = 500 * time.Millisecond, time.Second

	// yieldTime is how long it leaves the key to other processes after this one
	// has freed it, if no alarm comes.
	yieldTime = 5 * time.Millisecond
)

// An alarm goes off when a key may have become free.
type alarm struct {
	c    chan struct{}
	stop func()
}

func (a *alarm) ring() {
	select {
	case a.c <- struct{}{}:
	default:
	}
}

// wait asks until it gets the lock, an error that is not *HeldError, or ctx
// ends. The caller is inside the key's gate.
func (l *Locker) wait(ctx context.Context, h Hold, yield bool) (*Lease, error) {
	a := l.gates.alarm(h.Key)
	if yield && a != nil {
		if err := l.sleep(ctx, a, yieldTime); err != nil {
			return nil, refused(h.Key, Holder{Place: Place{Slot: -1}}, err)
		}
	}
	var last *HeldError
	for {
		lease, err := l.ask(ctx, h)
		if end := endOf(ctx); last != nil && err != nil && end != nil {
			return nil, refused(h.Key, last.Holder, end)
		}
		if !errors.As(err, &last) {
			return lease, err
		}
		if a == nil {
			if a = l.listen(ctx, h.Key); a != nil {
				continue // it may have become free before we listened
			}
		}
		if err := l.sleep(ctx, a, nap(a, last.Holder.TTL)); err != nil {
			return nil, refused(h.Key, last.Holder, err)
		}
	}
}

// refused is the end of a wait that ended early.
func refused(key string, holder Holder, err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	return &HeldError{Key: key, Holder: holder, Err: err}
}

// nap is how long to sleep before asking again. A holder that has died is
// noticed when its lock expires.
func nap(a *alarm, ttl time.Duration) time.Duration {
	if a == nil {
		return pollMin + rand.N(pollMax-pollMin)
	}
	d := floorMin + rand.N(floorMax-floorMin)
	if ttl > 0 {
		d = min(d, ttl+rand.N(5*time.Millisecond))
	}
	return d
}

// sleep sleeps for d, or until a goes off. It returns ctx's error or ErrClosed
// if these come first.
func (l *Locker) sleep(ctx context.Context, a *alarm, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var rung <-chan struct{}
	if a != nil {
		rung = a.c
	}
	select {
	case <-rung:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closing:
		return ErrClosed
	}
	return nil
}

// listen has the engine tell when key may have become free. It returns nil if
// the engine can't, now or ever.
func (l *Locker) listen(ctx context.Context, key string) *alarm {
	waker, ok := l.engine.(Waker)
	if !ok {
		return nil
	}
	a := &alarm{c: make(chan struct{}, 1)}
	stop, err := waker.Watch(ctx, key, a.ring)
	if err != nil {
		l.cfg.Logger.Debug("listen for the release of a lock", "key", key, "error", err)
		return nil
	}
	a.stop = stop
	l.gates.setAlarm(key, a)
	return a
}

func (g *gates) alarm(key string) *alarm {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m[key].alarm
}

func (g *gates) setAlarm(key string, a *alarm) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.m[key].alarm = a
}
