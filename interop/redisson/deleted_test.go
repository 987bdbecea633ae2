package interop_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/monitor/incident"
	"github.com/belaygo/belay/internal/monitor/watch"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// timeline is what a watcher has seen.
type timeline struct {
	mu      sync.Mutex
	entries []watch.Entry
}

func (l *timeline) record(_ context.Context, entries []watch.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entries...)
	return nil
}

func (l *timeline) all() []watch.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// watched has a watcher look at the cluster until the test ends.
func (s *stage) watched(t *testing.T) (*watch.Watcher, *timeline) {
	t.Helper()
	seen := new(timeline)
	w, err := watch.New(watch.Config{
		Targets: []watch.Target{{Name: "main", Addrs: s.addrs}}, Record: seen.record, Every: 250 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-w.Ready()
	return w, seen
}

// deletionProvesLittle: Redisson's release is a DEL, so where it works, that somebody
// deleted a lock of Go can be said with low confidence only.
func deletionProvesLittle(t *testing.T, s *stage) string {
	key := teststack.Key(t, "deleted")
	w, seen := s.watched(t)
	begun := time.Now()
	a := s.thread(t, "a")
	testwait.Until(t, "deletions are routine", func() bool {
		a.do(t, "lock", key)
		a.do(t, "unlock", key)
		return slices.ContainsFunc(seen.all(), func(e watch.Entry) bool { return e.Kind == watch.Deletion && e.Numbers[watch.Routine] == 1 })
	})

	held := acquire(t, s.locker, key)
	if n, err := s.cluster.Del(t.Context(), key).Result(); n != 1 || err != nil {
		t.Fatalf("DEL: %d, %v", n, err)
	}
	select {
	case <-held.Context().Done():
	case <-time.After(limit):
		t.Fatal("the lease does not end")
	}
	_ = held.Release(t.Context())
	lost := notify.Event{
		ID: "1", Service: "orders", Instance: "orders-1", Verdict: notify.Lost, Outcome: notify.RolledBack, Loss: notify.LossGone, Key: key,
		AcquiredAt: held.AcquiredAt(), TTL: held.TTL(), CaughtAt: time.Now(), Count: 1,
		Place: notify.Place{Node: held.Place().Node, Slot: held.Place().Slot},
	}
	at, ok := w.Locate(lost.Place)
	if !ok {
		t.Fatalf("the watcher does not know %+v", lost.Place)
	}
	x := incident.Explain(incident.Facts{
		Event: lost, Watched: true, Cluster: at.Cluster, SeenAt: time.Now(), From: begun, Timeline: seen.all(),
	})
	if x.Cause != incident.Deleted || x.Confidence != incident.Low {
		t.Errorf("cause %s, confidence %s, want deleted, low: %+v", x.Cause, x.Confidence, x.Evidence)
	}
	return fmt.Sprintf("cause %s, confidence %s: %s", x.Cause, x.Confidence, x.Evidence[1].Text)
}
