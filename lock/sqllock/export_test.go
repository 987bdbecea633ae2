package sqllock

import (
	"context"
	"time"

	"github.com/belaygo/belay/lock/switchlock"
)

// Sweep deletes what has ended for longer than age.
func Sweep(ctx context.Context, e Engine, age time.Duration) error {
	for _, table := range []string{"belay_lock", "belay_done"} {
		if err := e.(*engine).sweep(ctx, table, age); err != nil {
			return err
		}
	}
	return nil
}

// OnPoll has f called before each look at the table, with the number of names.
func OnPoll(e Engine, f func(names int)) {
	p := e.(*engine).poller
	held := p.held
	p.held = func(ctx context.Context, names []string) (map[string]bool, error) {
		f(len(names))
		return held(ctx, names)
	}
}

// Polling reports whether the engine looks for waiters.
func Polling(e Engine) bool {
	p := e.(*engine).poller
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Demote has the source take its server for a replica.
func Demote(s switchlock.Source) { s.(*source).readOnly = "1" }
