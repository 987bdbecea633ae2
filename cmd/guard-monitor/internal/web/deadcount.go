package web

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	keepDead    = 15 * time.Second
	deadTimeout = 10 * time.Second
)

// deadCount knows how many dead letters there are. To ask takes a connection to
// the broker, so run does it, and no page waits.
type deadCount struct {
	cfg   Config
	asked chan struct{}

	mu      sync.Mutex
	n       int
	known   bool
	at      time.Time // when the broker was last asked
	changed bool      // since the broker began to be asked
}

func newDeadCount(cfg Config) *deadCount {
	return &deadCount{cfg: cfg, asked: make(chan struct{}, 1)}
}

// last returns the last answer; known is false if there was none.
func (d *deadCount) last() (n int, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n, d.known
}

// want has the broker asked soon, unless it was just now.
func (d *deadCount) want() {
	select {
	case d.asked <- struct{}{}:
	default: // it will be
	}
}

// renew has the broker asked soon, whenever it was asked last.
func (d *deadCount) renew() {
	d.mu.Lock()
	d.changed = true
	d.mu.Unlock()
	d.want()
}

func (d *deadCount) old() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed || time.Since(d.at) >= keepDead
}

func (d *deadCount) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.asked:
		}
		if d.cfg.Letters != nil && d.old() {
			d.ask(ctx)
		}
	}
}

func (d *deadCount) ask(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, deadTimeout)
	defer cancel()
	d.mu.Lock()
	d.changed = false
	d.mu.Unlock()
	n, err := d.cfg.Letters.Count(limited)
	if err != nil && ctx.Err() == nil {
		d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "dead letters not counted", slog.Any("error", err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n, d.known, d.at = n, err == nil, time.Now()
}
