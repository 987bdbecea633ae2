package relay

import (
	"context"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
)

var quick atomic.Int64

// Quick returns cfg with a lease and pauses that a test can wait for. To every other relay all
// reads are slow.
func Quick(cfg Config) Config {
	if quick.Add(1)%2 == 0 {
		cfg = WithSlowReads(cfg)
	}
	cfg.limits.lease = 2 * time.Second
	cfg.limits.busyPoll = 10 * time.Millisecond
	cfg.limits.idlePoll = 20 * time.Millisecond
	cfg.limits.minPause = 5 * time.Millisecond
	cfg.limits.maxPause = 50 * time.Millisecond
	cfg.limits.outage = 100 * time.Millisecond
	return cfg
}

// WithLease returns cfg with another lease.
func WithLease(cfg Config, lease time.Duration) Config {
	cfg.limits.lease = lease
	return cfg
}

// StepClock moves the wall clock of the relay against the monotonic one, as while the host is suspended.
func (r *Relay) StepClock(d time.Duration) { r.loop.lanes.clock.Step(d) }

// WithPause returns cfg with a fixed bound of the pause before a message is tried again.
func WithPause(cfg Config, pause time.Duration) Config {
	cfg.limits.minPause, cfg.limits.maxPause = pause, pause
	return cfg
}

// WithReportTime returns cfg with another limit of what Close waits for events.
func WithReportTime(cfg Config, limit time.Duration) Config {
	cfg.limits.report = limit
	return cfg
}

// WithLimit returns cfg with another limit of a statement.
func WithLimit(cfg Config, limit time.Duration) Config {
	cfg.limits.writeTimeout = limit
	return cfg
}

// WithSlowReads returns cfg so that all reads are slow.
func WithSlowReads(cfg Config) Config {
	cfg.limits.slowRead = 1
	return cfg
}

// WithRoom returns cfg with another bound of the bytes in hand.
func WithRoom(cfg Config, bytes int) Config {
	cfg.limits.bytes = bytes
	return cfg
}

// Read returns the messages' ids that a relay would read of all lanes.
func Read(ctx context.Context, db *gorm.DB) (ids []string, err error) {
	base, err := message.Open(db, "test")
	if err != nil {
		return nil, err
	}
	var wants []want
	for lane := range message.Lanes {
		wants = append(wants, want{lane: lane, limit: maxWant})
	}
	rows, _, err := table{db: base}.read(ctx, wants, 1<<20)
	for _, r := range rows {
		ids = append(ids, r.msg.ID)
	}
	return ids, err
}
