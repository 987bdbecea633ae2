package redislock_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/lock/redislock"
)

// A probe writes beside the lock, under the engine's prefix, and in the lock's slot.
func TestProbeIsInTheSlotOfTheLock(t *testing.T) {
	node := newNode(t)
	var names []string
	node.reply = func(args []string) string {
		names = append(names, args[3])
		return granted["acquire"]
	}
	e := openWith(t, options(node.addr), redislock.Config{Prefix: "app:"})
	if err := e.Probe(t.Context(), "order:7"); err != nil {
		t.Fatal(err)
	}
	if want := "app:belay_probe:{app:order:7}"; len(names) != 1 || names[0] != want {
		t.Fatalf("sent a script on %q, want one on %q", names, want)
	}
	c := cluster(t)
	probe, lock := c.ClusterKeySlot(t.Context(), names[0]).Val(), c.ClusterKeySlot(t.Context(), "app:order:7").Val()
	if probe != lock {
		t.Errorf("the probe is in slot %d, the lock in slot %d", probe, lock)
	}
}

func TestProbeExpires(t *testing.T) {
	e, server := single(t)
	if err := e.Probe(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if left := server.TTL("belay_probe:{k}"); left != time.Millisecond {
		t.Errorf("the probe is left for %v, want a millisecond", left)
	}
	server.FastForward(time.Millisecond)
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("%v are left", keys)
	}
}

// Locks that too few replicas would have can't be acquired.
func TestProbeWaitsForReplicas(t *testing.T) {
	e, server := single(t, redislock.Config{Replicas: 1})
	wantUnclear(t, e.Probe(t.Context(), "k"), "replicas")
	server.FastForward(time.Millisecond)
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("%v are left", keys)
	}
}
