package relay

import (
	"errors"
	"time"

	"github.com/belaygo/belay/internal/background"
)

// callEnd is how long calls have to end when their context has.
const callEnd = 500 * time.Millisecond

// keep renews the leases of lanes, and writes results.
func (l *loop) keep() error {
	ctx, cancel := l.limited()
	defer cancel()
	_, _, err := l.lanes.keep(ctx, l.lose)
	return errors.Join(err, l.write())
}

// finish waits for the couriers, writes their results, and gives the lanes back. Until then it keeps
// them: others would send the messages that are under way. A call that does not end with its context
// is not awaited.
func (l *loop) finish() {
	renew := time.NewTicker(l.lanes.lease / 6)
	defer renew.Stop()
	ended, over := l.ctx.Done(), make(<-chan time.Time)
	for wait := true; wait && l.couriers > 0; {
		select {
		case r := <-l.results:
			l.handle(r)
		case <-ended:
			ended, over = nil, time.After(callEnd)
		case <-over:
			wait = false
		case <-renew.C:
			l.check(background.Do(l.cfg.Logger, "renew lanes", l.keep))
		}
	}
	l.collect()
	err := background.Do(l.cfg.Logger, "end the relay", func() error {
		written := l.write()
		if written != nil {
			written = l.write() // one by one
		}
		ctx, cancel := l.limited()
		defer cancel()
		return errors.Join(written, l.lanes.close(ctx))
	})
	if err != nil {
		l.cfg.Logger.Warn("relay has not given back its lanes; others take them when their leases end", "error", err)
	}
}
