package interop_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// deletionProvesLittle: Redisson's release is a DEL, so where it works, that somebody
// deleted a lock of Go can be said with low confidence only.
func deletionProvesLittle(t *testing.T, s *stage) string {
	broker := teststack.AMQP(t)
	monitor := startMonitor(t, broker, s.addrs)
	publisher, err := rabbitmq.New(broker, rabbitmq.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := publisher.Close(ctx); err != nil {
			t.Errorf("close the publisher: %v", err)
		}
	})

	key := teststack.Key(t, "deleted")
	a := s.thread(t, "a")
	testwait.Until(t, "deletions are routine", func() bool {
		a.do(t, "lock", key)
		a.do(t, "unlock", key)
		return slices.ContainsFunc(monitor.timeline(t, "deletion"), func(e entry) bool { return e.Numbers["routine"] == 1 })
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
	err = publisher.Publish(t.Context(), notify.Event{
		ID: "1", Service: "orders", Instance: "orders-1", Verdict: notify.VerdictLost, Outcome: notify.OutcomeRolledBack, Loss: notify.LossGone, Key: key,
		AcquiredAt: held.Grant().AcquiredAt, TTL: held.Grant().TTL, CaughtAt: time.Now(), Count: 1,
		Place: notify.Place{Node: held.Grant().Node, Slot: held.Grant().Slot},
	})
	if err != nil {
		t.Fatal(err)
	}

	var found []explained
	testwait.Until(t, "the event is explained", func() bool {
		found = monitor.incidents(t, url.Values{"service": {"orders"}, "cause": {"deleted"}})
		return len(found) > 0
	})
	if found[0].Confidence != "low" {
		t.Errorf("confidence %s, want low: %+v", found[0].Confidence, found[0].Evidence)
	}
	return fmt.Sprintf("cause %s, confidence %s: %s", found[0].Cause, found[0].Confidence, found[0].Evidence[1].Text)
}
