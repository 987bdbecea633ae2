package lock

import (
	"context"
	"errors"
	"time"
)

// Close refuses new acquires, ends those that wait with ErrClosed, and waits
// until every lease has been released or abandoned. When ctx ends first, it
// returns ctx's error, and the leases that are left are lost. Holds that may
// still exist are released one last time. Either way no goroutine of the Locker
// is left, unless the engine does not return. It may be called again.
func (l *Locker) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
		if l.active == 0 {
			close(l.drained)
		}
	}
	l.mu.Unlock()

	err := l.drain(ctx)
	l.halt()
	defer context.AfterFunc(ctx, l.cancel)() // requests on their way end with ctx
	select {
	case <-l.done:
	case <-time.After(2 * l.cfg.RequestTimeout):
		l.cancel()
		err = errors.Join(err, errors.New("lock: engine does not return"))
	}
	return err
}

// drain waits until no lease and no acquire is left, or ctx ends.
func (l *Locker) drain(ctx context.Context) error {
	select {
	case <-l.drained: // even if ctx has ended
		return nil
	default:
	}
	select {
	case <-l.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// halt stops the watchdog; the leases that are left are lost, and the retired
// holds are due for the last time.
func (l *Locker) halt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halted {
		return
	}
	for len(l.grants) > 0 {
		g := l.grants[0]
		if g.state == abandoned {
			l.expire(g, 0)
			continue
		}
		l.lose(g, errors.Join(g.lost(ErrLost, "the locker was closed"), ErrClosed), lostClosed)
	}
	for _, r := range l.retired {
		r.next = 0
	}
	l.halted = true
	close(l.stop)
}
