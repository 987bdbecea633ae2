package rabbitmq_test

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// The first node of the URL is down, then the second.
func TestSeveralNodes(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	one, through := newProxy(t, broker)
	two, _ := newProxy(t, broker)
	u, err := url.Parse(through)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	u.Host = one.addr + "," + two.addr
	one.refuse()
	p := newPublisher(t, u.String(), rabbitmq.PublisherConfig{})
	publish(t, p, 1)
	if two.connections() == 0 {
		t.Error("the second node was not asked")
	}
	one.heal(t)
	two.refuse()
	before := one.connections()
	publish(t, p, 2)
	if one.connections() == before {
		t.Error("the first node was not asked again")
	}
	if n := depth(t, broker, rabbitmq.Queue); n < 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// The topology is declared through whichever node is there.
func TestDeclareThroughSeveralNodes(t *testing.T) {
	broker := teststack.AMQP(t)
	one, through := newProxy(t, broker)
	two, _ := newProxy(t, broker)
	u, err := url.Parse(through)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	u.Host = one.addr + "," + two.addr
	one.refuse()
	if err := rabbitmq.Declare(t.Context(), u.String()); err != nil {
		t.Error(err)
	}
	two.refuse()
	if err := rabbitmq.Declare(t.Context(), u.String()); err == nil {
		t.Error("declared without a broker")
	}
}

// A broker that never confirms is not asked any more for a while, and then once.
func TestBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := newProxy(t, broker)
	net.refuse()
	p := newPublisher(t, through, rabbitmq.PublisherConfig{})
	testwait.Until(t, "the breaker is open", func() bool {
		return errors.Is(p.Publish(t.Context(), event(1)), rabbitmq.ErrOpen)
	})
	if testmetric.Sum(t, p, "belay_rabbitmq_breaker_state") == 0 {
		t.Error("the metric says that it is closed")
	}
	net.heal(t)
	publish(t, p, 1)
	if testmetric.Sum(t, p, "belay_rabbitmq_breaker_state") != 0 {
		t.Error("still open")
	}
	if n := depth(t, broker, rabbitmq.Queue); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}

// A broker without a queue is well: the breaker stays closed.
func TestUnroutableDoesNotOpenTheBreaker(t *testing.T) {
	p := newPublisher(t, teststack.AMQP(t), rabbitmq.PublisherConfig{})
	for range 20 {
		if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrUnroutable) {
			t.Fatalf("err = %v, want ErrUnroutable", err)
		}
	}
}

// Of two monitors one gets all events; when it goes, the other takes over.
func TestSingleActiveConsumer(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	var one, two store
	cfg := rabbitmq.ConsumerConfig{SingleActive: true}
	first, stopFirst := consume(t, broker, cfg, one.handle)
	testwait.Until(t, "the first reads", first.Connected)
	second, _ := consume(t, broker, cfg, two.handle)
	testwait.Until(t, "the second stands by", second.Connected)
	p := newPublisher(t, broker, rabbitmq.PublisherConfig{})
	for n := range 6 {
		publish(t, p, n)
	}
	testwait.Until(t, "the first has all", func() bool { return one.has(0, 1, 2, 3, 4, 5) })
	stopFirst()
	publish(t, p, 6)
	testwait.Until(t, "the second takes over", func() bool { return two.has(6) })
	if two.has(0) || one.has(6) {
		t.Error("both were active")
	}
}

func TestHeartbeats(t *testing.T) {
	broker := teststack.AMQP(t)
	beat := notify.Heartbeat{ID: "b-1", Service: "orders", At: time.Now().UTC(), Interval: time.Minute}
	p := newPublisher(t, broker, rabbitmq.PublisherConfig{})
	if err := p.PublishHeartbeat(t.Context(), beat); !errors.Is(err, rabbitmq.ErrUnroutable) {
		t.Errorf("no queue: err = %v, want ErrUnroutable", err)
	}
	if err := p.PublishHeartbeat(t.Context(), notify.Heartbeat{}); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("no heartbeat: err = %v, want ErrInvalidEvent", err)
	}
	var mu sync.Mutex
	var heard []notify.Heartbeat
	var s store
	c, _ := consume(t, broker, rabbitmq.ConsumerConfig{Heartbeat: func(_ context.Context, h notify.Heartbeat) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, h)
	}}, s.handle)
	testwait.Until(t, "it listens", c.Listening)
	onChannel(t, broker, func(ch *amqp.Channel) { // does no harm
		if err := ch.Publish(rabbitmq.Exchange, "heartbeat", false, false, amqp.Publishing{Body: []byte("{")}); err != nil {
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

func TestTraceIsInTheHeaders(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.PublisherConfig{})
	ev := event(1)
	ev.Trace = notify.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "a=1"}
	if err := p.Publish(t.Context(), ev); err != nil {
		t.Fatal(err)
	}
	onChannel(t, broker, func(ch *amqp.Channel) {
		got, ok, err := ch.Get(rabbitmq.Queue, true)
		if err != nil || !ok {
			t.Fatalf("get: %v, %v", ok, err)
		}
		if got.Headers["traceparent"] != ev.Trace.Parent || got.Headers["tracestate"] != ev.Trace.State {
			t.Errorf("headers %v", got.Headers)
		}
	})
}
