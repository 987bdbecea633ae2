package intake_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// The store is down for a while: the event waits, is not redelivered, and is
// acknowledged once it is stored.
func TestFailingHandlerIsCalledAgain(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	var s store
	s.fail = func(ev notify.Event) error {
		if s.given[ev.Key] <= 3 {
			return errors.New("the store is down")
		}
		return nil
	}
	c, stop := consume(t, broker, intake.Config{Prefetch: 1}, s.handle)
	p := newPublisher(t, broker, rabbitmq.Config{})
	publish(t, p, 1)
	publish(t, p, 2)
	testwait.Until(t, "both events are stored", func() bool { return testmetric.Sum(t, c, "belay_consumer_stored_total") == 2 })
	stop()
	for name, want := range map[string]float64{
		"belay_consumer_received_total":         2,
		"belay_consumer_handler_failures_total": 6,
		"belay_consumer_dead_lettered_total":    0,
	} {
		if got := testmetric.Sum(t, c, name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	for _, queue := range []string{rabbit.Queue, intake.DeadQueue} {
		if n := testamqp.Depth(t, broker, queue); n != 0 {
			t.Errorf("%d messages are left in %s", n, queue)
		}
	}
}

// The link breaks after the event was stored and before it was acknowledged, as
// when the monitor is killed: the event comes again.
func TestBrokenBetweenStoreAndAcknowledgement(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	publish(t, newPublisher(t, broker, rabbitmq.Config{}), 1)
	net, through := testamqp.NewProxy(t, broker)
	var s store
	var broken atomic.Bool
	back := make(chan struct{})
	c, stop := consume(t, through, intake.Config{}, func(ctx context.Context, ev notify.Event, raw []byte, _ string) error {
		if broken.CompareAndSwap(false, true) {
			net.Cut()
			select {
			case <-back:
			case <-ctx.Done():
			}
		}
		return s.handle(ctx, ev, raw, "")
	})
	testwait.Until(t, "the broker has the message back", func() bool { return broken.Load() && testamqp.Depth(t, broker, rabbit.Queue) == 1 })
	close(back)
	testwait.Until(t, "the event came again", func() bool { return s.times(1) >= 2 })
	testwait.Until(t, "the event is acknowledged", func() bool { return testmetric.Sum(t, c, "belay_consumer_stored_total") == 1 })
	stop()
	if n := testamqp.Depth(t, broker, rabbit.Queue); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// An acknowledgement that comes after the link broke must not hit another
// message, although the next session counts its messages from one again.
func TestLateAcknowledgementHitsNothing(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.Config{})
	for n := range 3 {
		publish(t, p, n)
	}
	net, through := testamqp.NewProxy(t, broker)
	var s store
	var broken atomic.Bool
	_, stop := consume(t, through, intake.Config{}, func(ctx context.Context, ev notify.Event, raw []byte, _ string) error {
		if ev.ID == event(1).ID && broken.CompareAndSwap(false, true) {
			net.Cut()
			return nil // "stored", too late to be acknowledged
		}
		return s.handle(ctx, ev, raw, "")
	})
	testwait.Until(t, "all events are stored", func() bool { return s.has(0, 1, 2) })
	stop()
	if n := testamqp.Depth(t, broker, rabbit.Queue); n > 1 {
		t.Errorf("%d messages are left, want at most the last", n)
	}
}

func TestLinkBreaksWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	publish(t, newPublisher(t, broker, rabbitmq.Config{}), 1)
	net, through := testamqp.NewProxy(t, broker)
	var s store
	s.fail = func(ev notify.Event) error {
		if s.given[ev.Key] == 1 {
			net.Cut()
			return errors.New("the store is down")
		}
		return nil
	}
	c, _ := consume(t, through, intake.Config{}, s.handle)
	testwait.Until(t, "the event is stored", func() bool { return testmetric.Sum(t, c, "belay_consumer_stored_total") == 1 })
}

// The store is down for longer than the session lasts: no other session is begun
// before the event is stored, since each costs all messages that wait here a
// delivery.
func TestNoSessionWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.Config{})
	for n := range 3 {
		publish(t, p, n)
	}
	net, through := testamqp.NewProxy(t, broker)
	var s store
	s.fail = func(ev notify.Event) error {
		call := s.given[ev.Key]
		if ev.ID != event(0).ID || call > 3 {
			return nil
		}
		if n := net.Connections(); n != 1 {
			t.Errorf("%d connections in call %d, want 1", n, call)
		}
		if call == 1 {
			net.Cut()
		}
		if call < 3 {
			return errors.New("the store is down")
		}
		return nil
	}
	c, _ := consume(t, through, intake.Config{}, s.handle)
	testwait.Until(t, "all events are stored", func() bool { return testmetric.Sum(t, c, "belay_consumer_stored_total") == 3 })
	if n := s.times(0); n != 4 {
		t.Errorf("the first event came %d times, want 3 and its copy", n)
	}
}

// Publisher and consumer share a network that breaks again and again: every
// event that was confirmed is stored.
func TestNothingIsLostOnABreakingNetwork(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	var s store
	consume(t, through, intake.Config{Prefetch: 5}, s.handle)
	p := newPublisher(t, through, rabbitmq.Config{})

	const n = 60
	var publishers sync.WaitGroup
	var published atomic.Int32
	for worker := range 3 {
		publishers.Go(func() {
			for i := worker; i < n; i += 3 {
				for p.Publish(t.Context(), event(i)) != nil && t.Context().Err() == nil {
				}
				published.Add(1)
			}
		})
	}
	testwait.Until(t, "some are published", func() bool { return published.Load() >= 10 })
	net.Cut()
	testwait.Until(t, "more are published", func() bool { return published.Load() >= 25 })
	net.Refuse()
	net.Heal(t)
	testwait.Until(t, "still more are published", func() bool { return published.Load() >= 40 })
	net.Cut()
	publishers.Wait()
	testwait.Until(t, "all are stored", func() bool {
		for i := range n {
			if !s.has(i) {
				return false
			}
		}
		return true
	})
}
