package rabbitmq_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/rabbitmq"
)

func TestRefusedConnection(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	net.Refuse()
	p := newPublisher(t, through, rabbitmq.Config{})
	err := p.Publish(t.Context(), event(1))
	if err == nil || !strings.Contains(err.Error(), net.Addr) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("err = %v, want one that names %s and the reason", err, net.Addr)
	}
	testamqp.WithoutPassword(t, through, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("ping: err = %v, want DeadlineExceeded with the reason", err)
	}
	net.Heal(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Fatal(err)
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	broker, err := url.Parse(teststack.AMQP(t))
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	broker.User = url.UserPassword(broker.User.Username(), "s3cr3t%wrong")
	p := newPublisher(t, broker.String(), rabbitmq.Config{})
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
	net, through := testamqp.NewProxy(t, broker)
	net.BeSilent()
	p := newPublisher(t, through, rabbitmq.Config{DialTimeout: time.Hour, Timeout: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Publish(ctx, event(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("publish: err = %v, want DeadlineExceeded", err)
	}
	if err := p.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping: err = %v, want DeadlineExceeded", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}

	impatient := newPublisher(t, through, rabbitmq.Config{DialTimeout: 50 * time.Millisecond})
	if err := impatient.Publish(t.Context(), event(1)); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("err = %v, want one that names the limit", err)
	}
}

// The link stays open, but nothing comes through any more: the confirm is
// missing, the session is given up, and the next one is sound.
func TestHalfOpenLink(t *testing.T) {
	t.Parallel()
	p, net, _ := newProxied(t, rabbitmq.Config{Timeout: 200 * time.Millisecond})
	release := net.Hold()
	defer release()
	if err := p.Publish(t.Context(), event(2)); err == nil {
		t.Error("published without a confirm")
	}
	publish(t, p, 2)
	if n := net.Connections(); n < 2 {
		t.Errorf("%d connections, want a second one", n)
	}
}

// The frames of connection.blocked and connection.unblocked.
var (
	blockedFrame   = []byte("\x01\x00\x00\x00\x00\x00\x0f\x00\x0a\x00\x3c\x0alow memory\xce")
	unblockedFrame = []byte("\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x3d\xce")
)

func TestBlockedBrokerIsNotSentAnything(t *testing.T) {
	p, net, broker := newProxied(t, rabbitmq.Config{Timeout: time.Hour})

	// The broker says so while a confirm is awaited.
	release := net.Hold()
	result := make(chan error, 1)
	go func() { result <- p.Publish(t.Context(), event(2)) }()
	testwait.Until(t, "the broker has the event", func() bool { return testamqp.Depth(t, broker, rabbit.Queue) == 2 })
	net.Inject(blockedFrame)
	if err := <-result; !errors.Is(err, rabbitmq.ErrBlocked) || !strings.Contains(err.Error(), "low memory") {
		t.Errorf("err = %v, want ErrBlocked with the reason", err)
	}
	release()
	if err := p.Publish(t.Context(), event(3)); !errors.Is(err, rabbitmq.ErrBlocked) {
		t.Errorf("err = %v, want ErrBlocked", err)
	}
	net.Inject(unblockedFrame)
	publish(t, p, 2)
	if n := net.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if n := testamqp.Depth(t, broker, rabbit.Queue); n != 3 {
		t.Errorf("%d messages in the queue, want events 1, 2 and 2", n)
	}
}

// The same, but nobody closes: the write fails at its deadline, and the next
// session is sound.
func TestHangingWriteFails(t *testing.T) {
	t.Parallel()
	p, net, _ := newProxied(t, rabbitmq.Config{Timeout: time.Hour})
	release := net.Deafen()
	defer release()
	large := event(2)
	large.Key = strings.Repeat("k", 24<<20)
	if err := p.Publish(t.Context(), large); err == nil {
		t.Error("published")
	}
	if n := net.HungUp.Load(); n != 0 {
		t.Error("the broker had to end the link")
	}
	publish(t, p, 3)
}

// newProxied returns a publisher that has reached its broker through a proxy,
// with event 1, and the broker's URL past it.
func newProxied(t *testing.T, cfg rabbitmq.Config) (p rabbitmq.Publisher, net *testamqp.Proxy, broker string) {
	t.Helper()
	broker = teststack.AMQP(t)
	declare(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	p = newPublisher(t, through, cfg)
	publish(t, p, 1)
	return p, net, broker
}
