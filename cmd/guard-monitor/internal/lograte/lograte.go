// Package lograte limits lines of the log that anybody who reaches guard-monitor can
// cause, so that they do not fill its disk.
package lograte

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const every = 10 * time.Second

// A Limit logs one line in ten seconds, and in it how many were left out since the last
// one. The zero value is ready. It is safe for concurrent use.
type Limit struct {
	mu   sync.Mutex
	last time.Time // zero: none was logged
	left int
}

// Warn logs a line at the level warn, or counts it.
func (l *Limit) Warn(ctx context.Context, logger *slog.Logger, line string, attrs ...slog.Attr) {
	if left, ok := l.take(time.Now()); ok {
		logger.LogAttrs(ctx, slog.LevelWarn, line, append(attrs, slog.Int("left_out", left))...) //nolint:sloglint // a constant of the caller's
	}
}

// take reports whether a line may be logged now, and how many were left out before it.
func (l *Limit) take(now time.Time) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < every {
		l.left++
		return 0, false
	}
	left, l.left, l.last = l.left, 0, now
	return left, true
}
