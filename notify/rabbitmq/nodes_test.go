package rabbitmq_test

import (
	"errors"
	"net/url"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
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
	one, through := testamqp.NewProxy(t, broker)
	two, _ := testamqp.NewProxy(t, broker)
	u, err := url.Parse(through)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	u.Host = one.Addr + "," + two.Addr
	one.Refuse()
	p := newPublisher(t, u.String(), rabbitmq.Config{})
	publish(t, p, 1)
	if two.Connections() == 0 {
		t.Error("the second node was not asked")
	}
	one.Heal(t)
	two.Refuse()
	before := one.Connections()
	publish(t, p, 2)
	if one.Connections() == before {
		t.Error("the first node was not asked again")
	}
	if n := testamqp.Depth(t, broker, rabbit.Queue); n < 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// A broker that never confirms is not asked any more for a while, and then once.
func TestBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	net.Refuse()
	p := newPublisher(t, through, rabbitmq.Config{})
	testwait.Until(t, "the breaker is open", func() bool {
		return errors.Is(p.Publish(t.Context(), event(1)), rabbitmq.ErrOpen)
	})
	if testmetric.Sum(t, p, "belay_rabbitmq_breaker_state") == 0 {
		t.Error("the metric says that it is closed")
	}
	net.Heal(t)
	publish(t, p, 1)
	if testmetric.Sum(t, p, "belay_rabbitmq_breaker_state") != 0 {
		t.Error("still open")
	}
	if n := testamqp.Depth(t, broker, rabbit.Queue); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}

// A broker without a queue is well: the breaker stays closed.
func TestUnroutableDoesNotOpenTheBreaker(t *testing.T) {
	p := newPublisher(t, teststack.AMQP(t), rabbitmq.Config{})
	for range 20 {
		if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrUnroutable) {
			t.Fatalf("err = %v, want ErrUnroutable", err)
		}
	}
}

func TestTraceIsInTheHeaders(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.Config{})
	ev := event(1)
	ev.Trace = notify.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "a=1"}
	if err := p.Publish(t.Context(), ev); err != nil {
		t.Fatal(err)
	}
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		got, ok, err := ch.Get(rabbit.Queue, true)
		if err != nil || !ok {
			t.Fatalf("get: %v, %v", ok, err)
		}
		if got.Headers["traceparent"] != ev.Trace.Parent || got.Headers["tracestate"] != ev.Trace.State {
			t.Errorf("headers %v", got.Headers)
		}
	})
}
