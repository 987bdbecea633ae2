package redislock

import (
	"context"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// probeOwner is the owner of all processes' probes: a second probe is no conflict.
const probeOwner = "probe:0"

// Probe implements lockengine.Pinger: it acquires a lock of a millisecond in key's slot, on
// Config.Replicas replicas, too.
func (e *engine) Probe(ctx context.Context, key string) error {
	r := lockengine.Request{Key: probeKey(e.lockName(key)), Owner: probeOwner}
	_, err := e.Acquire(ctx, r, time.Millisecond)
	return err
}

// probeKey returns the key of a lock's probe.
func probeKey(name string) string { return "belay_probe:" + tagged(name) }
