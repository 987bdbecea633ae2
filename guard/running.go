package guard

import (
	"context"
	"sync"
)

// running counts the calls that run, so that Close can wait for them.
type running struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when closed and n is 0
}

func newRunning() *running { return &running{idle: make(chan struct{})} }

func (r *running) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

// add counts what a call that runs has begun, though Close may have been called.
func (r *running) add() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	if r.closed && r.n == 0 {
		close(r.idle)
	}
}

func (r *running) close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		if r.n == 0 {
			close(r.idle)
		}
	}
	idle := r.n == 0
	r.mu.Unlock()
	if idle { // even if ctx has ended
		return nil
	}
	select {
	case <-r.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
