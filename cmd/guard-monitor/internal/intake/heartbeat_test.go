package intake_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// An event that cannot be stored holds up the events behind it, but no
// heartbeat. The consumer says that it does not hear everything.
func TestHeartbeatsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	errAway := errors.New("the store is away")
	var away atomic.Bool
	away.Store(true)
	s := store{fail: func(notify.Event) error {
		if away.Load() {
			return errAway
		}
		return nil
	}}
	var heard atomic.Int64
	const prefetch, beats = 10, 100
	c, _ := consume(t, broker, intake.Config{
		Prefetch:  prefetch,
		Heartbeat: func(context.Context, heartbeat.Heartbeat, string) { heard.Add(1) },
	}, s.handle)
	testwait.Until(t, "it listens", c.Listening)
	p := newPublisher(t, broker, rabbitmq.Config{})
	publish(t, p, 1)
	testwait.Until(t, "it says that it does not read", func() bool { return errors.Is(c.Err(), errAway) })
	for n := range beats {
		beat(t, p, n)
	}
	testwait.Until(t, "all are heard", func() bool { return heard.Load() == beats })
	if c.Listening() {
		t.Error("it listens, although events are held up")
	}
	away.Store(false)
	testwait.Until(t, "it listens again", c.Listening)
	testwait.Until(t, "none comes again", func() bool { return testamqp.Depth(t, broker, intake.HeartbeatQueue) == 0 })
}

// The queue of the heartbeats cannot be had, as when it is there with other
// arguments: events come all the same, and heartbeats as soon as it can.
func TestEventsWithoutHeartbeats(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if _, err := ch.QueueDeclare(intake.HeartbeatQueue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	})
	var heard atomic.Int64
	var s store
	c, _ := consume(t, broker, intake.Config{
		Heartbeat: func(context.Context, heartbeat.Heartbeat, string) { heard.Add(1) },
	}, s.handle)
	p := newPublisher(t, broker, rabbitmq.Config{})
	publish(t, p, 1)
	testwait.Until(t, "the event is stored", func() bool { return s.has(1) })
	if c.Err() != nil || c.Listening() || testmetric.Sum(t, c, "belay_consumer_listening") != 0 {
		t.Errorf("err = %v, listening %v, want neither", c.Err(), c.Listening())
	}
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(intake.HeartbeatQueue, false, false, false); err != nil {
			t.Fatal(err)
		}
	})
	testwait.Until(t, "it listens", c.Listening)
	beat(t, p, 1)
	testwait.Until(t, "the heartbeat is heard", func() bool { return heard.Load() == 1 })
}

// Heartbeats that come through another connection are those of another session, however soon it is made.
func TestSessions(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	var s store
	c, _ := consume(t, broker, intake.Config{Heartbeat: func(context.Context, heartbeat.Heartbeat, string) {}}, s.handle)
	testwait.Until(t, "it listens", c.Listening)
	first := c.Session()
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(intake.HeartbeatQueue, false, false, false); err != nil {
			t.Fatal(err)
		}
	})
	testwait.Until(t, "it listens through another connection", func() bool { return c.Session() > first })
}

func beat(t *testing.T, p rabbitmq.Publisher, n int) {
	t.Helper()
	err := p.PublishHeartbeat(t.Context(), heartbeat.Heartbeat{
		ID: fmt.Sprintf("b-%d", n), Service: "orders", At: time.Now(), Interval: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHeartbeats(t *testing.T) {
	broker := teststack.AMQP(t)
	beat := heartbeat.Heartbeat{ID: "b-1", Service: "orders", At: time.Now().UTC(), Interval: time.Minute}
	p := newPublisher(t, broker, rabbitmq.Config{})
	if err := p.PublishHeartbeat(t.Context(), beat); !errors.Is(err, rabbitmq.ErrUnroutable) {
		t.Errorf("no queue: err = %v, want ErrUnroutable", err)
	}
	if err := p.PublishHeartbeat(t.Context(), heartbeat.Heartbeat{}); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("no heartbeat: err = %v, want ErrInvalidEvent", err)
	}
	var mu sync.Mutex
	var heard []heartbeat.Heartbeat
	var s store
	c, _ := consume(t, broker, intake.Config{Heartbeat: func(_ context.Context, h heartbeat.Heartbeat, _ string) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, h)
	}}, s.handle)
	testwait.Until(t, "it listens", c.Listening)
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) { // does no harm
		if err := ch.Publish(rabbit.Exchange, "heartbeat", false, false, amqp.Publishing{Body: []byte("{")}); err != nil {
			t.Fatal(err)
		}
	})
	if err := p.PublishHeartbeat(t.Context(), beat); err != nil {
		t.Fatal(err)
	}
	publish(t, p, 1)
	testwait.Until(t, "both are there", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return s.has(1) && len(heard) == 1 && heard[0] == beat
	})
	if n := testmetric.Sum(t, c, "belay_consumer_heartbeats_total"); n != 1 {
		t.Errorf("heartbeats_total = %v, want 1", n)
	}
}
