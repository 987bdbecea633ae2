package rabbitmq_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// noticeAbsence has p look for the monitor's queue, which does not exist.
func noticeAbsence(t *testing.T, p rabbitmq.Publisher) {
	t.Helper()
	if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrUnroutable) {
		t.Fatalf("err = %v, want ErrUnroutable", err)
	}
}

// declareUnbound leaves the broker where a monitor has declared its queue and has
// not bound it yet.
func declareUnbound(t *testing.T, broker string) {
	t.Helper()
	declare(t, broker)
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.QueueUnbind(rabbit.Queue, "event.*", rabbit.Exchange, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// The monitor comes back: its queue is declared, and not bound yet. An event that
// is published now would reach the debug queue alone.
func TestDeclaredQueueIsNotTrustedBeforeItIsBound(t *testing.T) {
	broker := teststack.AMQP(t)
	bindDebug(t, broker)
	p := newPublisher(t, teststack.AMQPUser(t, broker, writer), rabbitmq.Config{})
	noticeAbsence(t, p)
	declareUnbound(t, broker)
	err := p.Publish(t.Context(), event(1))
	if !errors.Is(err, rabbitmq.ErrUnroutable) || !strings.Contains(err.Error(), "declared just now") {
		t.Errorf("err = %v, want ErrUnroutable with the reason", err)
	}
	if n := testamqp.Depth(t, broker, "debug"); n != 0 {
		t.Errorf("the debug queue has %d events, want none", n)
	}

	s := runMonitor(t, broker)
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the event is stored", func() bool { return s.has(1) })
	if n := testamqp.Depth(t, broker, "debug"); n != 1 {
		t.Errorf("the debug queue has %d events, want 1", n)
	}
}

// The queue is declared and bound, but no monitor reads it: events are published
// after a while.
func TestDeclaredQueueIsTrustedWithoutAMonitor(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	bindDebug(t, broker)
	p := newPublisher(t, broker, rabbitmq.Config{})
	noticeAbsence(t, p)
	declare(t, broker)
	refused := 0
	testwait.Until(t, "the event is published", func() bool {
		err := p.Publish(t.Context(), event(1))
		if err != nil && !errors.Is(err, rabbitmq.ErrUnroutable) {
			t.Fatalf("err = %v, want ErrUnroutable", err)
		}
		if err != nil {
			refused++
		}
		return err == nil
	})
	if refused == 0 {
		t.Error("the event was published at once")
	}
	if err := p.Publish(t.Context(), event(2)); err != nil {
		t.Errorf("the second event: %v", err)
	}
	for _, queue := range []string{rabbit.Queue, "debug"} {
		if n := testamqp.Depth(t, broker, queue); n != 2 {
			t.Errorf("the queue %s has %d events, want each once", queue, n)
		}
	}
}

// A Publisher that has lost its connection meanwhile does not trust the queue either.
func TestAbsenceOutlastsTheConnection(t *testing.T) {
	broker := teststack.AMQP(t)
	bindDebug(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	p := newPublisher(t, through, rabbitmq.Config{})
	noticeAbsence(t, p)
	net.Cut()
	declareUnbound(t, broker)
	testwait.Until(t, "the event is unroutable", func() bool {
		err := p.Publish(t.Context(), event(1))
		if err == nil {
			t.Fatal("published")
		}
		return errors.Is(err, rabbitmq.ErrUnroutable)
	})
	if n := net.Connections(); n < 2 {
		t.Errorf("%d connections, want a second one", n)
	}
}

// The broker does not answer whether somebody reads the queue: the Publisher ends
// the session, and the next one is sound.
func TestHalfOpenLinkAfterAnAbsence(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	bindDebug(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	var log testlog.Buffer
	p := newPublisher(t, through, rabbitmq.Config{
		Timeout: 200 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	testwait.Until(t, "the absence is noticed", func() bool {
		return errors.Is(p.Publish(t.Context(), event(1)), rabbitmq.ErrUnroutable)
	})
	runMonitor(t, broker)
	release := net.Hold()
	defer release()
	publish(t, p, 1)
	if !strings.Contains(log.String(), "closed network connection") {
		t.Errorf("the Publisher did not end the session itself:\n%s", log.String())
	}
}
