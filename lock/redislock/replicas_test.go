package redislock_test

import (
	"testing"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// TestReplicaIsLost: without the replica that Config.Replicas asks for, no lock is granted, and none
// is left behind. Locks that are held are renewed and released. Callers that wait get the lock when
// the replica is back.
func TestReplicaIsLost(t *testing.T) {
	t.Parallel()
	master := teststack.StartRedis(t, teststack.Volatile)
	replica := teststack.StartRedis(t, teststack.Volatile+"replicaof 127.0.0.1 "+master.Port+"\n")
	e := openURL(t, "redis://"+master.Addr, redislock.Config{Replicas: 1})
	testwait.Until(t, "the replica follows", func() bool {
		_, err := e.Acquire(t.Context(), hold, ttl)
		return err == nil
	})
	replica.Kill()

	free := lockengine.Request{Key: "free", Owner: "me:2"}
	_, err := e.Acquire(t.Context(), free, ttl)
	wantVerdict(t, "Acquire", err, lockengine.ErrRefused, "0 of 1 replicas")
	wantVerdict(t, "Probe", e.Probe(t.Context(), free.Key), lockengine.ErrRefused, "0 of 1 replicas")
	wantFindings(t, e, map[string]string{"error redis-rejects": "0 of 1 replicas"})
	if n := master.Do("exists", free.Key).Val(); n != int64(0) {
		t.Error("a lock is left that was not granted")
	}
	if err := e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
	release(t, e, hold)

	waits := make(chan error, 1)
	l := newLocker(t, e, lock.Config{})
	go func() {
		_, err := l.Acquire(t.Context(), free.Key)
		waits <- err
	}()
	replica.Start()
	if err := <-waits; err != nil {
		t.Errorf("a caller that waits: %v", err)
	}
}
