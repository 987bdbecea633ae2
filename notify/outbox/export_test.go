package outbox

import "time"

// The errors that only tests distinguish.
var (
	ErrClosed     = errClosed
	ErrNotDrained = errNotDrained
)

// Limits are bounds that only tests set. Zero means the default.
type Limits struct {
	GatherDelay, WriteTimeout, Lease, PollInterval, Drain time.Duration
	BatchSize                                             int
}

// With returns c with other limits.
func (c Config) With(l Limits) Config {
	c.limits = limits{
		gatherDelay: l.GatherDelay, writeTimeout: l.WriteTimeout, lease: l.Lease,
		pollInterval: l.PollInterval, batchSize: l.BatchSize, drain: l.Drain,
	}
	return c
}
