package rabbitmq_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// writer is the regular expression of what a service may write to.
const writer = `^belay\.(events|monitor)$`

// bindDebug binds a queue that somebody watches the events with.
func bindDebug(t *testing.T, broker string) {
	t.Helper()
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.ExchangeDeclare(rabbit.Exchange, "topic", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare("debug", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind("debug", "#", rabbit.Exchange, false, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func deleteQueue(t *testing.T, broker string) {
	t.Helper()
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(rabbit.Queue, false, false, false); err != nil {
			t.Fatal(err)
		}
	})
}

// Somebody deletes the monitor's queue while the monitor is away. Another queue
// is bound to the exchange, and would satisfy mandatory. The events wait in the
// outbox until the monitor has declared its queue again.
func TestEventsWaitForTheMonitorsQueue(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	bindDebug(t, broker)
	deleteQueue(t, broker)
	p := newPublisher(t, teststack.AMQPUser(t, broker, writer), rabbitmq.Config{})
	o, err := outbox.New(openDatabase(t), outbox.Config{Relay: p})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := o.Publish(t.Context(), event(n)); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the relay has tried", func() bool {
		return testmetric.Sum(t, p, "belay_rabbitmq_published_total") >= 3
	})
	if n := testmetric.Sum(t, o, "belay_outbox_backlog"); n != 3 {
		t.Errorf("%v events are left in the outbox, want all 3", n)
	}

	s := runMonitor(t, broker)
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "all events are stored", func() bool { return s.has(0, 1, 2) })
	if n := testamqp.Depth(t, broker, "debug"); n != 3 {
		t.Errorf("the debug queue has %d events, want the 3 that were published", n)
	}
}

// The queue is deleted under a connected Publisher.
func TestPublisherNoticesADeletedQueue(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	bindDebug(t, broker)
	p := newPublisher(t, teststack.AMQPUser(t, broker, writer), rabbitmq.Config{})
	for n := range 3 {
		if err := p.Publish(t.Context(), event(n)); err != nil {
			t.Fatal(err)
		}
	}
	deleteQueue(t, broker)
	for range 5 {
		if err := p.Publish(t.Context(), event(3)); !errors.Is(err, rabbitmq.ErrUnroutable) {
			t.Fatalf("err = %v, want ErrUnroutable", err)
		}
	}
	if n := testamqp.Depth(t, broker, "debug"); n != 3 {
		t.Errorf("the debug queue has %d events, want 3", n)
	}
	runMonitor(t, broker)
	if err := p.Publish(t.Context(), event(3)); err != nil {
		t.Fatal(err)
	}
}

// The monitor's queue is missing, and many callers publish at once: each learns
// it, on one connection, and the breaker stays closed.
func TestMissingQueueCostsNoConnection(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	bindDebug(t, broker)
	deleteQueue(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	var log testlog.Buffer
	p := newPublisher(t, through, rabbitmq.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	const callers = 40
	results := make(chan error, callers)
	for n := range callers {
		go func() { results <- p.Publish(t.Context(), event(n)) }()
	}
	for range callers {
		if err := <-results; !errors.Is(err, rabbitmq.ErrUnroutable) {
			t.Errorf("err = %v, want ErrUnroutable", err)
		}
	}
	runMonitor(t, broker)
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Fatal(err)
	}
	if n := net.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if strings.Contains(log.String(), "not connected") {
		t.Errorf("logged:\n%s", log.String())
	}
	if n := testamqp.Depth(t, broker, "debug"); n != 1 {
		t.Errorf("the debug queue has %d events, want 1", n)
	}
}

// The broker has closed a channel for want of a queue. That it blocks the
// connection is noticed all the same.
func TestBlockedBrokerIsNoticedAfterAMissingQueue(t *testing.T) {
	p, net, broker := newProxied(t, rabbitmq.Config{})
	deleteQueue(t, broker)
	for range 20 {
		if err := p.Publish(t.Context(), event(2)); !errors.Is(err, rabbitmq.ErrUnroutable) {
			t.Fatalf("err = %v, want ErrUnroutable", err)
		}
	}
	runMonitor(t, broker)
	for range 20 { // more than any buffer for them has room for
		publish(t, p, 2)
		net.Inject(blockedFrame)
		testwait.Until(t, "events are blocked", func() bool {
			return errors.Is(p.Publish(t.Context(), event(2)), rabbitmq.ErrBlocked)
		})
		net.Inject(unblockedFrame)
	}
	publish(t, p, 2)
	if n := net.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// A broker that does not let the service look for the queue: events are published
// all the same, and the log says what is missing.
func TestPublisherWithoutTheRightToCheckTheQueue(t *testing.T) {
	broker := teststack.AMQP(t)
	bindDebug(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	net.Forbid()
	var log testlog.Buffer
	p := newPublisher(t, through, rabbitmq.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for n := range 3 {
		if err := p.Publish(t.Context(), event(n)); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "without a check"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, log.String())
	}
	if n := testamqp.Depth(t, broker, "debug"); n != 3 {
		t.Errorf("the debug queue has %d events, want each once", n)
	}
	if n := net.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// The broker refuses the exchange, not the check of the queue: once the right is
// granted, the queue is checked as ever.
func TestRefusedExchangeKeepsTheCheck(t *testing.T) {
	for _, refusals := range []int{1, 2} {
		t.Run(fmt.Sprint(refusals), func(t *testing.T) {
			broker := teststack.AMQP(t)
			bindDebug(t, broker)
			declare(t, broker)
			user := teststack.AMQPUser(t, broker, `^belay\.monitor$`)
			p := newPublisher(t, user, rabbitmq.Config{})
			for range refusals {
				err := p.Publish(t.Context(), event(1))
				var refusal *amqp.Error
				if !errors.As(err, &refusal) || refusal.Code != amqp.AccessRefused {
					t.Fatalf("err = %v, want the broker's 403", err)
				}
			}
			teststack.Grant(t, user, writer)
			if err := p.Publish(t.Context(), event(1)); err != nil {
				t.Fatal(err)
			}
			deleteQueue(t, broker)
			if err := p.Publish(t.Context(), event(2)); !errors.Is(err, rabbitmq.ErrUnroutable) {
				t.Errorf("err = %v, want ErrUnroutable", err)
			}
			if n := testamqp.Depth(t, broker, "debug"); n != 1 {
				t.Errorf("the debug queue has %d events, want 1", n)
			}
		})
	}
}
