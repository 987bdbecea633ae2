package outbox

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/backoff"
)

// overtime is how long a call may outlast its context before it is logged.
const overtime = 10 * time.Second

// watch logs a call that does not return when its limit is over: until it does,
// the relay stands still. The returned function ends the watch.
func (c Config) watch(call string, limit time.Duration) (returned func() bool) {
	return time.AfterFunc(limit+overtime, func() {
		c.Logger.Error("events are not relayed: a call does not return at the end of its context", "call", call, "limit", limit)
	}).Stop
}

// publish gives the publisher its share of time.
func (r *relay) publish(ctx context.Context, body []byte) error {
	defer r.cfg.watch("publish", r.cfg.RelayTimeout)()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RelayTimeout)
	defer cancel()
	return send(ctx, r.cfg.Relay, body)
}

// write changes the table, also when the relay is told to stop just now.
func (r *relay) write(ctx context.Context, change func(context.Context) error) error {
	defer r.cfg.watch("write to the table", r.cfg.WriteTimeout)()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.WriteTimeout)
	defer cancel()
	return change(ctx)
}

// pause returns the pauses of what the last pass failed at. The table and the
// publisher fail and recover on their own.
func (r *relay) pause() *backoff.Backoff {
	if r.leased {
		return &r.publisherPause
	}
	return &r.tablePause
}

// rest pauses after a failure. Events that are stored meanwhile, and Close, cut
// the pause short.
func (r *relay) rest(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	delay := r.pause().Next()
	if r.isDraining() {
		delay = min(delay, maxDrainPause)
	}
	r.cfg.Logger.Warn("events are not relayed", "error", err, "retry_in", delay)
	r.wait(ctx, min(delay, maxWakePause), nil)
	if rest := delay - maxWakePause; rest > 0 {
		r.wait(ctx, rest, r.woken)
	}
}

// idle waits until rows are stored, or may have been by others.
func (r *relay) idle(ctx context.Context) { r.wait(ctx, r.cfg.PollInterval, r.woken) }

// wait waits for d, for a token in woken, for Close to begin or for the end of
// ctx. The heart goes on beating.
func (r *relay) wait(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	draining := r.draining
	if r.sweep.last { // the news is old
		draining = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-woken:
			return
		case <-draining:
			return
		case <-ctx.Done():
			return
		case <-r.heart.due():
			r.heart.beat(ctx)
		}
	}
}

func (r *relay) isDraining() bool {
	select {
	case <-r.draining:
		return true
	default:
		return false
	}
}
