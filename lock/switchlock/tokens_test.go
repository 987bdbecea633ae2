package switchlock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock/switchlock"
)

// A far source is a store that one process can't reach for a while: it relies on what it has read.
type far struct {
	*store
	away atomic.Bool
}

func (f *far) Read(ctx context.Context) (switchlock.Record, error) {
	if f.away.Load() {
		return switchlock.Record{}, errors.New("out of reach")
	}
	return f.store.Read(ctx)
}

// Four processes acquire one lock in turn, through switches between engines whose tokens are times
// and counts. Three of them learn late of each switch, and one is started anew after it. Once all
// have learned of a switch, each token is greater than all before it, those of the late ones, too.
func TestTokensGrowForLateProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processes = 4
		f := newFleet()
		f.cfg.Engines["counter"] = &counter{engine: newEngine()}
		f.cfg.Engines["another"] = &counter{engine: newEngine()}
		f.cfg.Logger = slog.New(slog.DiscardHandler)
		f.cfg.Lease, f.cfg.TTL = lease, ttl
		var sources [processes]*far
		var all [processes]switchlock.Engine
		begin := func(i int) {
			sources[i] = &far{store: f.source}
			cfg := f.cfg
			cfg.Source = sources[i]
			all[i] = open(t, cfg)
		}
		for i := range all {
			begin(i)
		}
		var last int64
		grant := func(i int) (int64, error) {
			g, err := all[i].Acquire(t.Context(), mine, f.cfg.TTL)
			if err != nil {
				return 0, err
			}
			return g.Token, all[i].Release(t.Context(), mine)
		}
		inTurn := func(when string) {
			t.Helper()
			for n := range 3 * processes {
				token, err := grant(n % processes)
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				if token <= last {
					t.Errorf("%s: process %d gets token %d after %d, %d less", when, n%processes, token, last, last-token)
				}
				last = max(last, token)
			}
		}
		inTurn("at first")
		for _, name := range []string{"counter", "b", "another", "counter", "a"} {
			for _, s := range sources[1:] {
				s.away.Store(true)
			}
			r := to(t, all[0], name)
			for late := true; late; { // they rely on the old record for up to a Lease
				late = false
				for i := range all {
					if token, err := grant(i); err == nil {
						late = late || all[i].State().Epoch < r.Epoch
						last = max(last, token)
					}
				}
				<-time.After(100 * time.Millisecond)
			}
			for _, s := range sources {
				s.away.Store(false)
			}
			_ = all[processes-1].Close(t.Context())
			begin(processes - 1)
			for i := range all {
				eventually(t, "learned", func() bool { return all[i].State().Epoch == r.Epoch })
			}
			inTurn("all know that locks move to " + name)
			for i := range all {
				eventually(t, "settled", settled(all[i], r.Epoch))
			}
			inTurn("locks have moved to " + name)
		}
	})
}
