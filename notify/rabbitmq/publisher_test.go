package rabbitmq_test

import (
	"errors"
	"reflect"
	"strings"
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

func TestPublishedMessage(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.Config{})
	want := event(1)
	want.Service = strings.Repeat("服", 200) // longer than a property can be
	if err := p.Publish(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		got, ok, err := ch.Get(rabbit.Queue, true)
		if err != nil || !ok {
			t.Fatalf("get: %v, %v", ok, err)
		}
		var back notify.Event
		if err := back.UnmarshalJSON(got.Body); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, want) {
			t.Errorf("body %+v, want %+v", back, want)
		}
		if got.Exchange != "belay.events" || got.RoutingKey != "event.overlap" {
			t.Errorf("came through %s with %s", got.Exchange, got.RoutingKey)
		}
		if got.DeliveryMode != amqp.Persistent || got.MessageId != want.ID ||
			got.ContentType != "application/cloudevents+json" || got.Type != "io.github.belaygo.interception.v1" ||
			!got.Timestamp.Equal(want.CaughtAt) || !strings.HasPrefix(want.Service, got.AppId) || got.AppId == "" {
			t.Errorf("properties: %+v", got)
		}
	})
	if n := testmetric.Sum(t, p, "belay_rabbitmq_connected"); n != 1 {
		t.Errorf("connected = %v, want 1", n)
	}
}

func TestUnroutableEventIsAnError(t *testing.T) {
	broker := teststack.AMQP(t)
	p := newPublisher(t, broker, rabbitmq.Config{})
	if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrUnroutable) {
		t.Errorf("no exchange: err = %v, want ErrUnroutable", err)
	}
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.ExchangeDeclare(rabbit.Exchange, "topic", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	})
	for range 3 {
		if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrUnroutable) {
			t.Errorf("no queue: err = %v, want ErrUnroutable", err)
		}
	}
	s := runMonitor(t, broker)
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Fatalf("with the queue: %v", err)
	}
	testwait.Until(t, "the event is stored", func() bool { return s.has(1) })
}

// TestQueueThatTakesNothingIsAnError: the monitor's queue is there, without its binding.
func TestQueueThatTakesNothingIsAnError(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.QueueUnbind(rabbit.Queue, rabbit.EventPattern, rabbit.Exchange, nil); err != nil {
			t.Fatal(err)
		}
	})
	p := newPublisher(t, broker, rabbitmq.Config{})
	if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrUnroutable) {
		t.Errorf("err = %v, want ErrUnroutable", err)
	}
}

func TestFullQueueRefuses(t *testing.T) {
	broker := teststack.AMQP(t)
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.ExchangeDeclare(rabbit.Exchange, "topic", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare(rabbit.Queue, true, false, false, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"}); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind(rabbit.Queue, "event.*", rabbit.Exchange, false, nil); err != nil {
			t.Fatal(err)
		}
	})
	p := newPublisher(t, broker, rabbitmq.Config{})
	testwait.Until(t, "the queue is full", func() bool {
		err := p.Publish(t.Context(), event(1))
		if err != nil && !errors.Is(err, rabbitmq.ErrRefused) {
			t.Fatalf("err = %v, want ErrRefused", err)
		}
		return err != nil
	})
}

func TestInvalidEventIsNotSent(t *testing.T) {
	p := newPublisher(t, "amqp://127.0.0.1:1", rabbitmq.Config{})
	if err := p.Publish(t.Context(), notify.Event{}); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("err = %v, want ErrInvalidEvent", err)
	}
}

func TestWhatIsNoEventIsNotSent(t *testing.T) {
	p := newPublisher(t, "amqp://127.0.0.1:1", rabbitmq.Config{})
	good, err := event(1).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"nothing":      "",
		"null":         "null",
		"a heartbeat":  strings.Replace(string(good), "interception.v1", "heartbeat.v1", 1),
		"no id":        strings.Replace(string(good), event(1).ID, "", 1),
		"no verdict":   strings.Replace(string(good), `"overlap"`, `""`, 1),
		"two words":    strings.Replace(string(good), `"overlap"`, `"over.lap"`, 1),
		"long verdict": strings.Replace(string(good), `"overlap"`, `"`+strings.Repeat("x", 256)+`"`, 1),
	} {
		if err := p.PublishRaw(t.Context(), []byte(body)); !errors.Is(err, notify.ErrInvalidEvent) {
			t.Errorf("%s: err = %v, want ErrInvalidEvent", name, err)
		}
	}
}
