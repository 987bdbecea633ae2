package dispatch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

// A receiver that does not answer is asked again, ever more seldom, until it
// has all of it.
func TestRetry(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		var tries []time.Time
		n.inbox.setFail(func(*receiver.Notification) error {
			tries = append(tries, time.Now())
			return errors.New("no answer")
		})
		n.save("1", "orders", incident.New)
		n.expect(time.Hour)
		n.inbox.setFail(nil)
		n.expect(5*time.Minute+2*time.Second, "first notification: firing 1")
		if len(tries) < 15 || len(tries) > 25 || tries[1].Sub(tries[0]) > 2*time.Second || tries[14].Sub(tries[13]) < 4*time.Minute {
			t.Errorf("%d tries at %v", len(tries), tries)
		}
		log := n.store.log
		if len(log) != 2 || log[1].Error != "" || log[1].Attempts != len(tries)+1 || !strings.Contains(log[0].Error, "no answer") {
			t.Errorf("log %+v", log)
		}
	})
}

// The retry that a receiver asks for is kept, and one message that is refused
// holds up no other.
func TestRefused(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		tries := 0
		n.inbox.setFail(func(n *receiver.Notification) error {
			if n.GroupLabels["service"] == "orders" {
				tries++
				return &receiver.Error{Permanent: true}
			}
			return nil
		})
		n.save("1", "orders", incident.New)
		n.save("2", "stock", incident.New)
		n.expect(4*time.Minute, "first notification: firing 1")
		if tries != 1 {
			t.Errorf("a refused message was tried %d times in 4 minutes", tries)
		}
		n.inbox.setFail(func(*receiver.Notification) error { return &receiver.Error{RetryAfter: 20 * time.Minute} })
		n.expect(10 * time.Minute)
		n.inbox.setFail(nil)
		n.expect(8 * time.Minute)
		n.expect(10*time.Minute, "first notification: firing 1")
	})
}

// A receiver that forgets what it does not hear of is asked again before it does,
// whether it refuses a message or does not answer.
func TestContinuousRetry(t *testing.T) {
	for _, failed := range []error{&receiver.Error{Permanent: true}, errors.New("no answer")} {
		inBubble(t, func(r *dispatch.Route) {
			r.Continuous, r.GroupBy, r.GroupWait, r.GroupInterval, r.RepeatInterval = true, nil, 0, 0, time.Minute
		}, func(n *night) {
			n.inbox.setFail(func(*receiver.Notification) error { return failed })
			n.save("1", "orders", incident.New)
			n.expect(time.Hour)
			n.inbox.setFail(nil)
			n.expect(time.Minute, "first notification: firing 1")
		})
	}
}

// More than the rate becomes one digest, and nothing is left out.
func TestRate(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.RatePerMinute, r.MaxAlerts = 3, 10 }, func(n *night) {
		for i := range 40 {
			n.save(fmt.Sprint(i), fmt.Sprint("service", i), incident.New)
		}
		n.expect(15*time.Second, "digest of 40 groups: firing 40")
		n.save("a", "a", incident.New)
		n.save("b", "b", incident.New)
		n.expect(15*time.Second, "first notification: firing 1", "first notification: firing 1")
		n.save("c", "c", incident.New)
		n.save("d", "d", incident.New)
		n.expect(20 * time.Second) // the minute has its three
		n.expect(30*time.Second, "digest of 2 groups: firing 2")
		n.expect(time.Hour)
		if got := n.inbox.got; len(got) > 0 {
			t.Errorf("told %v", got)
		}
	})
}

// A digest that is refused, since it is too long, does not keep the messages back
// that it was made of.
func TestDigestRefused(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.RatePerMinute = 2 }, func(n *night) {
		n.inbox.setFail(func(m *receiver.Notification) error {
			if strings.HasPrefix(m.Reason, "digest") {
				return &receiver.Error{Receiver: "night", Permanent: true}
			}
			return nil
		})
		for _, service := range []string{"a", "b", "c", "d"} {
			n.save(service, service, incident.New)
		}
		first := "first notification: firing 1"
		n.expect(5*time.Minute, first, first, first, first)
	})
}

// A message that is on its way when the program stops arrives and is logged.
func TestStop(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.inbox.setFail(func(*receiver.Notification) error {
			<-time.After(2 * time.Second) // on the bubble's clock
			return nil
		})
		n.save("1", "orders", incident.New)
		n.expect(11 * time.Second)
		n.stop()
		if got := n.inbox.take(); !slices.Equal(got, []string{"first notification: firing 1"}) {
			t.Errorf("told %q", got)
		}
		if log := n.store.log; len(log) != 1 {
			t.Errorf("log %v", log)
		}
	})
}

// The store keeps who was told; while it cannot, nobody is told twice.
func TestStoreFails(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.store.setFailing(true)
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.expect(10 * time.Minute)
		n.store.setFailing(false)
		n.expect(10 * time.Minute)
	})
}

// While nothing changes, the store is not read for what was sent.
func TestNothingChanges(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		for _, id := range []string{"1", "2", "3"} {
			n.save(id, "orders", incident.New)
		}
		n.expect(15*time.Second, "first notification: firing 3")
		n.expect(3 * time.Hour)
		n.store.mu.Lock()
		defer n.store.mu.Unlock()
		if n.store.asked != 1 {
			t.Errorf("the store was read %d times for what was sent, want once", n.store.asked)
		}
	})
}
