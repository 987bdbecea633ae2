package rabbitmq_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(n int) notify.Event {
	return notify.Event{
		ID:       fmt.Sprintf("0199a1b2-0000-7000-8000-%012d", n),
		Service:  "orders",
		Verdict:  notify.VerdictOverlap,
		Outcome:  notify.OutcomeRefused,
		Key:      fmt.Sprintf("order:中国:%d", n),
		CaughtAt: time.Date(2026, 11, 21, 9, 30, 7, 0, time.UTC),
		Count:    1,
	}
}

func newPublisher(t *testing.T, url string, cfg rabbitmq.Config) rabbitmq.Publisher {
	t.Helper()
	p, err := rabbitmq.New(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// publish repeats until the event is confirmed, as the outbox does.
func publish(t *testing.T, p rabbitmq.Publisher, n int) {
	t.Helper()
	testwait.Until(t, fmt.Sprintf("event %d is published", n), func() bool {
		return p.Publish(t.Context(), event(n)) == nil
	})
}

// declare declares what a monitor needs of the topology.
func declare(t *testing.T, url string) {
	t.Helper()
	testamqp.OnChannel(t, url, func(ch *amqp.Channel) {
		if err := ch.ExchangeDeclare(rabbit.Exchange, "topic", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare(rabbit.Queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind(rabbit.Queue, rabbit.EventPattern, rabbit.Exchange, false, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// A monitor reads the queue as guard-monitor does.
type monitor struct {
	mu  sync.Mutex
	ids map[string]bool // of the events it has acknowledged
}

// runMonitor declares the topology and reads the queue until the test ends.
func runMonitor(t *testing.T, url string) *monitor {
	t.Helper()
	declare(t, url)
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	messages, err := ch.Consume(rabbit.Queue, "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{ids: map[string]bool{}}
	var reading sync.WaitGroup
	reading.Go(func() {
		for d := range messages {
			m.take(d)
		}
	})
	t.Cleanup(func() {
		conn.Close()
		reading.Wait()
	})
	return m
}

func (m *monitor) take(d amqp.Delivery) {
	var ev notify.Event
	if ev.UnmarshalJSON(d.Body) == nil && d.Ack(false) == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ids[ev.ID] = true
	}
}

func (m *monitor) has(events ...int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !slices.ContainsFunc(events, func(n int) bool { return !m.ids[event(n).ID] })
}
