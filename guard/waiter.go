package guard

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// A waiter is the place of a call in the line for its key, and then in a crew. It gets signals,
// and may leave while nobody has a use for it.
type waiter struct {
	key     string
	shape   any             // of what the call does: those of a crew have the same
	ctx     context.Context // the caller's
	until   time.Time       // when the wait for the key ends
	signals chan signal     // one at a time

	mu   sync.Mutex
	used bool // it leads, or the crew's transaction may touch its rows
	left bool // it has an answer
}

// A signal tells a waiter what to do next.
type signal struct {
	next   next
	err    error        // with turnDone
	change func() tried // with turnChange
}

type next int

const (
	turnLead   next = iota // acquire the lock for the next crew
	turnChange             // make the change
	turnDone               // return err
	turnAlone              // run without the others
	turnApart              // the same, but the request may be known already
)

// tried is what became of a change in its turn.
type tried struct {
	in    bool   // it is one of the crew's, or has failed as one
	alone string // why the call runs alone, if it has to
	err   error  // what the call returns otherwise
}

// newWaiter returns a waiter for a key, until a time or the end of the caller's context.
func newWaiter(ctx context.Context, key string, shape any, until time.Time) *waiter {
	return &waiter{key: key, shape: shape, ctx: ctx, until: until, signals: make(chan signal, 1)}
}

// place implements queued.
func (w *waiter) place() *waiter { return w }

// signal tells w what to do next, which has done what it was told before.
func (w *waiter) signal(s signal) { w.signals <- s }

// await returns the next signal, or an error if the wait ends while w can leave: waited ends
// with the wait for the key, and quit takes w out of its line, if it is in one.
func (w *waiter) await(waited context.Context, quit func() bool) (signal, error) {
	select {
	case next := <-w.signals:
		return next, nil
	case <-waited.Done():
	}
	if quit() {
		return signal{}, w.refused()
	}
	select {
	case next := <-w.signals:
		return next, nil
	case <-w.ctx.Done():
	}
	if w.leave() {
		return signal{}, w.ctx.Err()
	}
	return <-w.signals, nil
}

// leave takes w out of its crew, while that waits for a connection or for the row. It
// reports false if the crew has a use for w's rows: an answer comes.
func (w *waiter) leave() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = !w.used
	return w.left
}

// use keeps w until it has an answer. It reports false if w has left.
func (w *waiter) use() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = !w.left
	return w.used
}

// gone reports whether w has left.
func (w *waiter) gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left
}

// spare lets w leave again, as its rows are as they were.
func (w *waiter) spare() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = false
}

// waits reports whether w still waits for the key.
func (w *waiter) waits() bool { return w.ctx.Err() == nil && time.Now().Before(w.until) }

// refused is the error of a waiter whose wait has ended.
func (w *waiter) refused() error {
	held := &lockengine.HeldError{Key: w.key, Holder: lockengine.Holder{Place: lockengine.Place{Slot: -1}}}
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w: %w", ErrBusy, held, err)
	}
	return fmt.Errorf("%w: %w", ErrBusy, held)
}
