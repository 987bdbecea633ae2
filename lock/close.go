package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Close rejects new acquires with ErrClosed, except those inside a living lease. It ends
// those that wait, and waits until every lease has been released or abandoned. Then it
// releases unused grants, until the engine has answered about each or it has expired:
// give Close the time that a failover takes. It returns an error if there were too many
// unused grants, so that some are left to expire.
//
// When ctx ends first, Close returns an error that matches ctx's. The remaining leases
// are lost, and unused grants expire. In both cases no goroutine of the Locker is left,
// unless the engine does not return. Close may be called again.
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
	defer context.AfterFunc(ctx, l.cancel)() // so releaseRemaining and the requests end with ctx
	<-l.settled
	if n := l.leftBehind(); n > 0 && err == nil {
		cause := cmp.Or(ctx.Err(), l.ctx.Err(), errTooMany) // l.ctx ends with that of another Close
		err = fmt.Errorf("lock: %d locks may be held until they expire: %w", n, cause)
	}
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

var errTooMany = errors.New("too many to release")

// leftBehind returns how many orphans may still exist.
func (l *Locker) leftBehind() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now() <= l.orphans.droppedBy {
		n = l.orphans.dropped
	}
	for _, r := range l.orphans.all {
		if l.now() <= r.until {
			n++
		}
	}
	return n
}

// halt stops the watchdog. The remaining leases are lost, and the orphans are due at
// once, even those whose last release was answered.
func (l *Locker) halt() {
	l.mu.Lock()
	defer l.unlock()
	if l.halted {
		return
	}
	for len(l.grants) > 0 {
		g := l.grants[0]
		if g.state == stateAbandoned {
			l.expire(g, 0)
			continue
		}
		l.loseAtClose(g)
	}
	for _, r := range l.orphans.due {
		r.again = dueNow
	}
	l.halted = true
	close(l.stop)
}
