package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

// Pauses after a failure.
const (
	minPause      = 200 * time.Millisecond
	maxPause      = 30 * time.Second
	maxWakePause  = time.Second // if events are stored during the pause
	maxDrainPause = time.Second // while Close waits
	maxAskedPause = time.Minute // if the publisher requests it

	logInterval = 10 * time.Second // between lines at level warn about pauses
)

// A busyError is the error of a publisher whose destination requests a pause.
type busyError interface {
	error
	RetryAfter() time.Duration
}

// askedPause returns the pause that err requests, within its bound.
func askedPause(err error) time.Duration {
	busy, ok := errors.AsType[busyError](err)
	if !ok {
		return 0
	}
	return min(max(busy.RetryAfter(), 0), maxAskedPause)
}

// A pacer waits between the passes of a relay, while heartbeats continue, and backs off
// after failures. It belongs to the relay's goroutine; wake, drain and isDraining may
// be called by any.
type pacer struct {
	cfg   Config
	heart *heart

	woken    chan struct{}   // has a token when rows were stored
	draining context.Context // ends when Close begins, and with the relay
	drain    context.CancelFunc

	last      bool         // whether this is the last sweep, whose waits Close does not cut short
	leased    bool         // by the last pass: the table works
	table     wait.Backoff // after the table failed
	publisher wait.Backoff // after the publisher failed
	logged    time.Time    // the last pause, at level warn
}

// newPacer returns the pacer of a relay, which stops when ctx ends.
func newPacer(ctx context.Context, cfg Config, h *heart) *pacer {
	p := &pacer{
		cfg: cfg, heart: h, woken: make(chan struct{}, 1),
		table:     wait.Backoff{Min: minPause, Max: maxPause},
		publisher: wait.Backoff{Min: minPause, Max: maxPause},
	}
	p.draining, p.drain = context.WithCancel(ctx)
	return p
}

func (p *pacer) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

func (p *pacer) isDraining() bool { return p.draining.Err() != nil }

// pause returns the backoff of the table or the publisher, whichever the last pass
// failed at. The two fail and recover independently.
func (p *pacer) pause() *wait.Backoff {
	if p.leased {
		return &p.publisher
	}
	return &p.table
}

// rest pauses after a failure. Close cuts the pause short, and so do newly stored
// events, unless the publisher requested the pause.
func (p *pacer) rest(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	asked := askedPause(err)
	delay := max(p.pause().Next(), asked)
	if p.isDraining() {
		delay = min(delay, maxDrainPause)
	}
	level := slog.LevelWarn
	if since := time.Since(p.logged); since < logInterval {
		level = slog.LevelDebug
	} else {
		p.logged = time.Now()
	}
	p.cfg.Logger.Log(ctx, level, "events are not relayed", "error", err, "retry_in", delay)
	uncut := max(maxWakePause, asked)
	p.wait(ctx, min(delay, uncut), nil)
	if rest := delay - uncut; rest > 0 {
		p.wait(ctx, rest, p.woken)
	}
}

// idle waits until rows are stored, or may have been by other processes.
func (p *pacer) idle(ctx context.Context) { p.wait(ctx, p.cfg.limits.pollInterval, p.woken) }

// wait waits for d, for a token in woken, for Close to begin or for the end of ctx.
// Heartbeats continue.
func (p *pacer) wait(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	limit := p.draining
	if p.last {
		limit = ctx
	}
	for end := time.Now().Add(d); ; p.heart.beat(ctx) {
		timer := time.NewTimer(min(time.Until(end), p.heart.rest()))
		select {
		case <-timer.C:
		case <-woken:
			timer.Stop()
			return
		case <-limit.Done():
			timer.Stop()
			return
		}
		if limit.Err() != nil || !time.Now().Before(end) {
			return
		}
	}
}
