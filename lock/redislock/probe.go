package redislock

import (
	"context"
	"time"

	"github.com/belaygo/belay/lock"
)

// probeOwner holds all probes, of whatever process: a second probe is no conflict.
const probeOwner = "probe:0"

// Probe implements lock.Pinger: it acquires a lock of a millisecond beside that on
// key, on as many replicas.
func (e *Engine) Probe(ctx context.Context, key string) error {
	r := lock.Request{Key: "belay_probe:" + tagged(e.lockName(key)), Owner: probeOwner}
	_, err := e.Acquire(ctx, r, time.Millisecond)
	return err
}
