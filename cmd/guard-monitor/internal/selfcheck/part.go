package selfcheck

import (
	"context"
	"sync"
	"time"
)

const (
	round   = time.Second
	settle  = 10 * time.Second
	timeout = 10 * time.Second // of one check
	// A round that begins so late shows that this process or its host stood still.
	stall = 10 * time.Second
)

// Part is something that guard-monitor needs.
type Part struct {
	Name    string                          // such as broker; the label "part" of alerts
	Summary string                          // what guard-monitor cannot do, while Err fails
	Next    string                          // what people do then
	Err     func(ctx context.Context) error // nil while the part works
}

// watched is a part with what its checks have shown.
type watched struct {
	Part
	after, settle time.Duration

	mu    sync.Mutex
	state state
}

// state is how a part is.
type state struct {
	since  time.Time // of the first error; zero while it works
	wellAt time.Time // since when there is no error; zero while there is
	failed bool      // since After ago or longer
	proved bool      // it worked for a while, at least once
	err    error     // the last
}

func newWatched(p Part, after time.Duration) *watched {
	return &watched{Part: p, after: after, settle: min(settle, after)}
}

// run checks until ctx ends.
func (w *watched) run(ctx context.Context) {
	tick := time.NewTicker(round)
	defer tick.Stop()
	ended := time.Now()
	for ctx.Err() == nil {
		stalled := time.Since(ended) > stall
		bounded, cancel := context.WithTimeout(ctx, timeout)
		err := w.Err(bounded)
		cancel()
		if ctx.Err() != nil {
			return
		}
		ended = time.Now()
		w.note(ended, err, stalled)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// note takes the result of a check. After a stall, nothing is known of the time before.
func (w *watched) note(now time.Time, err error, stalled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.state
	if err == nil {
		if s.wellAt.IsZero() || stalled {
			s.wellAt = now
		}
		if now.Sub(s.wellAt) >= w.settle {
			s.since, s.failed, s.proved = time.Time{}, false, true
		}
		return
	}
	s.err, s.wellAt = err, time.Time{}
	if s.since.IsZero() || stalled && !s.failed {
		s.since = now
	}
	s.failed = s.failed || now.Sub(s.since) >= w.after
}

// look returns how the part is. well is true once there was no error for a while; while it
// is neither failed nor well, nothing new is known.
func (w *watched) look(now time.Time) (s state, well bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s = w.state
	return s, !s.wellAt.IsZero() && now.Sub(s.wellAt) >= w.settle
}
