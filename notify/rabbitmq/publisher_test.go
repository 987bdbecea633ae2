package rabbitmq_test

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"strings"
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

func TestPublishedMessage(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.PublisherConfig{})
	want := event(1)
	want.Service = strings.Repeat("服", 200) // longer than a property can be
	if err := p.Publish(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	onChannel(t, broker, func(ch *amqp.Channel) {
		got, ok, err := ch.Get(rabbitmq.Queue, true)
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
			got.ContentType != "application/cloudevents+json" || got.Type != notify.EventType ||
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
	p := newPublisher(t, broker, rabbitmq.PublisherConfig{})
	if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrUnroutable) {
		t.Errorf("no exchange: err = %v, want ErrUnroutable", err)
	}
	onChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.ExchangeDeclare(rabbitmq.Exchange, "topic", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	})
	for range 3 {
		if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrUnroutable) {
			t.Errorf("no queue: err = %v, want ErrUnroutable", err)
		}
	}
	declare(t, broker)
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Errorf("with the queue: %v", err)
	}
	if n := depth(t, broker, rabbitmq.Queue); n != 1 {
		t.Errorf("%d messages in the queue, want 1", n)
	}
}

func TestFullQueueRefuses(t *testing.T) {
	broker := teststack.AMQP(t)
	onChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.ExchangeDeclare(rabbitmq.Exchange, "topic", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare("small", true, false, false, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"}); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind("small", "event.*", rabbitmq.Exchange, false, nil); err != nil {
			t.Fatal(err)
		}
	})
	p := newPublisher(t, broker, rabbitmq.PublisherConfig{})
	testwait.Until(t, "the queue is full", func() bool {
		err := p.Publish(t.Context(), event(1))
		if err != nil && !errors.Is(err, rabbitmq.ErrRefused) {
			t.Fatalf("err = %v, want ErrRefused", err)
		}
		return err != nil
	})
}

func TestInvalidEventIsNotSent(t *testing.T) {
	p := newPublisher(t, "amqp://127.0.0.1:1", rabbitmq.PublisherConfig{})
	if err := p.Publish(t.Context(), notify.Event{}); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("err = %v, want ErrInvalidEvent", err)
	}
}

func TestRefusedConnection(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := newProxy(t, broker)
	net.refuse()
	p := newPublisher(t, through, rabbitmq.PublisherConfig{})
	err := p.Publish(t.Context(), event(1))
	if err == nil || !strings.Contains(err.Error(), net.addr) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("err = %v, want one that names %s and the reason", err, net.addr)
	}
	withoutPassword(t, through, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("ping: err = %v, want DeadlineExceeded with the reason", err)
	}
	net.heal(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Fatal(err)
	}
}

// withoutPassword expects that an error does not give away the broker's
// password.
func withoutPassword(t *testing.T, broker string, err error) {
	t.Helper()
	u, parseErr := url.Parse(broker)
	if parseErr != nil {
		t.Fatal("the broker's URL is none")
	}
	if password, ok := u.User.Password(); ok && err != nil && strings.Contains(err.Error(), password) {
		t.Error("the error holds the password")
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	broker, err := url.Parse(teststack.AMQP(t))
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	broker.User = url.UserPassword(broker.User.Username(), "s3cr3t%wrong")
	p := newPublisher(t, broker.String(), rabbitmq.PublisherConfig{})
	err = p.Publish(t.Context(), event(1))
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("err = %v, want the broker's 403", err)
	}
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Error("the error holds the password")
	}
}

func TestSilentEndpoint(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	net, through := newProxy(t, broker)
	net.beSilent()
	p := newPublisher(t, through, rabbitmq.PublisherConfig{DialTimeout: time.Hour, Timeout: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Publish(ctx, event(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("publish: err = %v, want DeadlineExceeded", err)
	}
	if err := p.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping: err = %v, want DeadlineExceeded", err)
	}
	if err := rabbitmq.Declare(ctx, through); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("declare: err = %v, want DeadlineExceeded", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}

	impatient := newPublisher(t, through, rabbitmq.PublisherConfig{DialTimeout: 50 * time.Millisecond})
	if err := impatient.Publish(t.Context(), event(1)); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("err = %v, want one that names the limit", err)
	}
}

// The link stays open, but nothing comes through any more: the confirm is
// missing, the session is given up, and the next one is sound.
func TestHalfOpenLink(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := newProxy(t, broker)
	p := newPublisher(t, through, rabbitmq.PublisherConfig{Timeout: 200 * time.Millisecond})
	publish(t, p, 1)
	release := net.hold()
	defer release()
	if err := p.Publish(t.Context(), event(2)); err == nil {
		t.Error("published without a confirm")
	}
	publish(t, p, 2)
	if n := net.connections(); n < 2 {
		t.Errorf("%d connections, want a second one", n)
	}
}

// The frames of connection.blocked and connection.unblocked.
var (
	blockedFrame   = []byte("\x01\x00\x00\x00\x00\x00\x0f\x00\x0a\x00\x3c\x0alow memory\xce")
	unblockedFrame = []byte("\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x3d\xce")
)

func TestBlockedBrokerIsNotSentAnything(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := newProxy(t, broker)
	p := newPublisher(t, through, rabbitmq.PublisherConfig{Timeout: time.Hour})
	publish(t, p, 1)

	// The broker says so while a confirm is awaited.
	release := net.hold()
	result := make(chan error, 1)
	go func() { result <- p.Publish(t.Context(), event(2)) }()
	testwait.Until(t, "the broker has the event", func() bool { return depth(t, broker, rabbitmq.Queue) == 2 })
	net.inject(blockedFrame)
	if err := <-result; !errors.Is(err, rabbitmq.ErrBlocked) || !strings.Contains(err.Error(), "low memory") {
		t.Errorf("err = %v, want ErrBlocked with the reason", err)
	}
	release()
	if err := p.Publish(t.Context(), event(3)); !errors.Is(err, rabbitmq.ErrBlocked) {
		t.Errorf("err = %v, want ErrBlocked", err)
	}
	net.inject(unblockedFrame)
	publish(t, p, 2)
	if n := net.connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if n := depth(t, broker, rabbitmq.Queue); n != 3 {
		t.Errorf("%d messages in the queue, want events 1, 2 and 2", n)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.PublisherConfig{})
	publish(t, p, 0)
	var publishers sync.WaitGroup
	for i := range 20 {
		publishers.Go(func() {
			for n := 0; ; n++ {
				err := p.Publish(t.Context(), event(100*i+n))
				if errors.Is(err, rabbitmq.ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("err = %v, want nil or ErrClosed", err)
					return
				}
			}
		})
	}
	for range 2 {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	publishers.Wait()
	if err := p.Ping(t.Context()); !errors.Is(err, rabbitmq.ErrClosed) {
		t.Errorf("ping: err = %v, want ErrClosed", err)
	}
}

func TestCloseOfAPublisherNeverUsed(t *testing.T) {
	p := newPublisher(t, "amqp://broker.invalid", rabbitmq.PublisherConfig{})
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrClosed) {
		t.Errorf("err = %v, want ErrClosed", err)
	}
}

// The broker keeps its mouth shut when the publisher says good-bye.
func TestCloseWithoutAnswer(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := newProxy(t, broker)
	p := newPublisher(t, through, rabbitmq.PublisherConfig{Timeout: time.Hour})
	publish(t, p, 1)
	release := net.hold()
	defer release()
	result := make(chan error, 1)
	go func() { result <- p.Publish(t.Context(), event(2)) }()
	testwait.Until(t, "the broker has the event", func() bool { return depth(t, broker, rabbitmq.Queue) == 2 })
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, rabbitmq.ErrClosed) {
		t.Errorf("err = %v, want ErrClosed", err)
	}
}

// The broker reads no more, and the event is larger than all buffers between:
// the write itself hangs.
func TestCloseWhileAWriteHangs(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := newProxy(t, broker)
	p := newPublisher(t, through, rabbitmq.PublisherConfig{Timeout: time.Hour})
	publish(t, p, 1)
	release := net.deafen()
	defer release()
	said := net.said.Load()
	large := event(2)
	large.Key = strings.Repeat("k", 24<<20)
	result := make(chan error, 1)
	go func() { result <- p.Publish(t.Context(), large) }()
	testwait.Until(t, "the write has begun", func() bool { return net.said.Load() > said })
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-result; err == nil {
		t.Error("published")
	}
}

// The same, but nobody closes: the write fails at its deadline, and the next
// session is sound.
func TestHangingWriteFails(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := newProxy(t, broker)
	p := newPublisher(t, through, rabbitmq.PublisherConfig{Timeout: time.Hour})
	publish(t, p, 1)
	release := net.deafen()
	defer release()
	large := event(2)
	large.Key = strings.Repeat("k", 24<<20)
	if err := p.Publish(t.Context(), large); err == nil {
		t.Error("published")
	}
	if n := net.hungUp.Load(); n != 0 {
		t.Error("the broker had to end the link")
	}
	publish(t, p, 3)
}
