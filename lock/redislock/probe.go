package redislock

import (
	"context"
	"time"

	"github.com/belaygo/belay/lock"
)

// probeOwner holds all probes, of whatever process: a second probe is no conflict.
const probeOwner = "probe:0"

// probeKey is the key that is locked to learn whether the lock at name could be. It
// has the engine's prefix, for users who may not touch others, and is in the slot
// of name.
func probeKey(name string) string { return "belay_probe:{" + name + "}" }

// Probe implements lock.Pinger: it acquires a lock of a millisecond beside that on
// key, on as many replicas.
func (e *Engine) Probe(ctx context.Context, key string) error {
	r := lock.Request{Key: probeKey(e.lockName(key)), Owner: probeOwner}
	_, err := e.Acquire(ctx, r, time.Millisecond)
	return err
}
