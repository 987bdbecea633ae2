package shop

import (
	"context"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// Holds keeps operations that stand still in their transactions, as a process
// does that is paused: they hold the lock and have not written yet.
type Holds struct {
	mu sync.Mutex
	m  map[string]*hold
}

type hold struct {
	held, resumed chan struct{}
	once          sync.Once
}

func newHolds() *Holds { return &Holds{m: make(map[string]*hold)} }

func (h *Holds) of(no string) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m[no] == nil {
		h.m[no] = &hold{held: make(chan struct{}), resumed: make(chan struct{})}
	}
	return h.m[no]
}

// before returns op with a hold before it.
func (h *Holds) before(no string, op guard.Op) guard.Op {
	return func(ctx context.Context, tx *gorm.DB) error {
		here := h.of(no)
		close(here.held)
		select {
		case <-here.resumed:
			return op(ctx, tx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Held waits until the operation on order no stands still.
func (h *Holds) Held(ctx context.Context, no string) error {
	select {
	case <-h.of(no).held:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Resume lets it go on.
func (h *Holds) Resume(no string) {
	here := h.of(no)
	here.once.Do(func() { close(here.resumed) })
}
