package sqllock

import (
	"context"
	"time"
)

// Sweep deletes what has ended for longer than age.
func (e *Engine) Sweep(ctx context.Context, age time.Duration) error {
	for _, table := range []string{"belay_lock", "belay_done"} {
		if err := e.sweep(ctx, table, age); err != nil {
			return err
		}
	}
	return nil
}

// OnPoll has f called before each look at the table, with the number of names.
func (e *Engine) OnPoll(f func(names int)) {
	held := e.poller.held
	e.poller.held = func(ctx context.Context, names []string) (map[string]bool, error) {
		f(len(names))
		return held(ctx, names)
	}
}

// Polling reports whether the engine looks for waiters.
func (e *Engine) Polling() bool {
	e.poller.mu.Lock()
	defer e.poller.mu.Unlock()
	return e.poller.running
}

// Demote has the source take its server for a replica.
func (s *Source) Demote() { s.readOnly = "1" }
