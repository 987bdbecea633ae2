package redislock_test

import (
	"context"
	"testing"

	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

func TestMetrics(t *testing.T) {
	e, server := single(t, redislock.Config{Name: "locks"})
	defer e.Close(context.Background())
	acquire(t, e, hold)
	_, err := e.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: "they:1"}, ttl)
	wantHeld(t, err, hold.Owner)
	_, _ = watch(t, e, "k")
	e.Renew(t.Context(), []lockengine.Request{hold, hold}, ttl)
	release(t, e, hold)
	wantIs(t, e.Release(t.Context(), hold), lockengine.ErrNotHeld)
	server.SetError("ERR no")
	wantUnclear(t, e.Release(t.Context(), hold), "no")

	for _, want := range []struct {
		command, result string
		n               float64
	}{
		{"acquire", "ok", 1}, {"acquire", "held", 1}, {"renew", "ok", 2}, {"release", "ok", 1},
		{"release", "not_held", 1}, {"release", "error", 1}, {"inspect", "ok", 0},
	} {
		labels := []string{"name", "locks", "command", want.command, "result", want.result}
		if n := testmetric.Sum(t, e, "belay_redis_requests_total", labels...); n != want.n {
			t.Errorf("%v: %v, want %v", labels, n, want.n)
		}
	}
	for _, name := range []string{"belay_redis_watched", "belay_redis_subscription_connections"} {
		if n := testmetric.Sum(t, e, name); n != 1 {
			t.Errorf("%s is %v, want 1", name, n)
		}
	}
}
