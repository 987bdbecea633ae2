package guard

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/notify"
)

// pausing is a Publisher whose process is paused in the first calls, for a time behind their end.
type pausing struct {
	calls int
	each  []time.Duration
	ids   map[string]bool
}

func (p *pausing) Publish(ctx context.Context, ev notify.Event) error {
	p.ids[ev.ID] = true
	if p.calls++; p.calls > len(p.each) {
		return nil
	}
	<-ctx.Done()
	<-time.After(p.each[p.calls-1])
	return ctx.Err()
}

// TestPausedWhilePublishing: the event of a process that was paused while it published is published once more, and
// not if the Publisher was only slow.
func TestPausedWhilePublishing(t *testing.T) {
	for name, tt := range map[string]struct {
		each  []time.Duration
		calls int
		given bool
	}{
		"not paused":        {nil, 1, true},
		"slow":              {[]time.Duration{pausedFor}, 1, false},
		"paused":            {[]time.Duration{2 * pausedFor}, 2, true},
		"paused, then slow": {[]time.Duration{2 * pausedFor, 0}, 2, false},
		"paused twice":      {[]time.Duration{2 * pausedFor, 2 * pausedFor}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pausing{each: tt.each, ids: make(map[string]bool)}
				r := &reporter{cfg: Config{EndTimeout: 5 * time.Second, Publisher: p, Logger: slog.New(slog.DiscardHandler)}, metrics: newMetrics("")}
				given := r.handOver(t.Context(), notify.Event{ID: "e1", Verdict: notify.VerdictLost})
				if given != tt.given || p.calls != tt.calls || len(p.ids) != 1 {
					t.Errorf("handed over: %t, in %d calls of %d ids; want %t in %d", given, p.calls, len(p.ids), tt.given, tt.calls)
				}
			})
		})
	}
}
