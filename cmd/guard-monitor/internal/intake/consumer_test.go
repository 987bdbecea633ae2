package intake_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
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

func TestRoundTrip(t *testing.T) {
	broker := teststack.AMQP(t)
	var s store
	c, stop := consume(t, broker, intake.Config{}, s.handle)
	p := newPublisher(t, broker, rabbitmq.Config{})
	for n := range 5 {
		publish(t, p, n)
	}
	testwait.Until(t, "all events are stored", func() bool { return testmetric.Sum(t, c, "belay_consumer_stored_total") == 5 })
	if c.Err() != nil || testmetric.Sum(t, c, "belay_consumer_connected") != 1 {
		t.Errorf("not connected: %v", c.Err())
	}
	if err := c.Run(t.Context(), s.handle); !errors.Is(err, intake.ErrRunning) {
		t.Errorf("a second Run: err = %v, want ErrRunning", err)
	}
	stop()
	for n := range 5 {
		if times := s.times(n); times != 1 {
			t.Errorf("event %d came %d times, want once", n, times)
		}
	}
	if n := testamqp.Depth(t, broker, rabbit.Queue); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	if c.Err() == nil || testmetric.Sum(t, c, "belay_consumer_connected") != 0 {
		t.Error("connected after the end of Run")
	}
}

// A handler that panics, or ends its goroutine, ends Run: who never reads again
// must not look as if he did.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	c, err := intake.New(broker, intake.Config{Heartbeat: func(context.Context, heartbeat.Heartbeat, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Run(context.Background(), func(context.Context, notify.Event, []byte, string) error {
			runtime.Goexit()
			return nil
		})
	}()
	publish(t, newPublisher(t, broker, rabbitmq.Config{}), 0)
	<-ended
	if c.Err() == nil || c.Listening() {
		t.Error("connected after the end of Run")
	}
}

func TestRunNeedsAHandler(t *testing.T) {
	c, err := intake.New("amqp://host", intake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "handle is nil") {
		t.Errorf("err = %v, want one that says that handle is nil", err)
	}
}

func TestWhatIsNoEventGoesToTheDeadLetters(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	bodies := []string{"", "{", "\xff\x00", `{"specversion":"1.0","type":"another"}`, strings.Repeat("x", 300_000)}
	for _, body := range bodies {
		send(t, broker, amqp.Publishing{Body: []byte(body), MessageId: "odd\x1b[2J", DeliveryMode: amqp.Persistent})
	}
	var s store
	c, _ := consume(t, broker, intake.Config{}, s.handle)
	publish(t, newPublisher(t, broker, rabbitmq.Config{}), 1)
	testwait.Until(t, "the event behind is stored", func() bool { return s.has(1) })
	testwait.Until(t, "the dead letters are there", func() bool { return testamqp.Depth(t, broker, intake.DeadQueue) == len(bodies) })
	if n := testmetric.Sum(t, c, "belay_consumer_dead_lettered_total"); n != float64(len(bodies)) {
		t.Errorf("dead_lettered_total = %v, want %d", n, len(bodies))
	}
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		for _, want := range bodies {
			got, ok, err := ch.Get(intake.DeadQueue, true)
			if err != nil || !ok || string(got.Body) != want {
				t.Errorf("dead letter %.40q, %v, %v; want %.40q", got.Body, ok, err, want)
			}
		}
	})
}

func TestRejectedEventGoesToTheDeadLetters(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.Config{})
	publish(t, p, 1)
	publish(t, p, 2)
	s := store{fail: func(ev notify.Event) error {
		if ev.ID == event(1).ID {
			return errors.Join(errors.New("no such service"), intake.ErrReject)
		}
		return nil
	}}
	consume(t, broker, intake.Config{Prefetch: 1}, s.handle)
	testwait.Until(t, "the event behind is stored", func() bool { return s.has(2) })
	testwait.Until(t, "the dead letter is there", func() bool { return testamqp.Depth(t, broker, intake.DeadQueue) == 1 })
	if n := s.times(1); n != 1 {
		t.Errorf("the handler got the rejected event %d times, want once", n)
	}
}

func TestConsumerOnASilentEndpoint(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	net, through := testamqp.NewProxy(t, broker)
	net.BeSilent()
	var s store
	c, stop := consume(t, through, intake.Config{}.WithDialTimeout(time.Hour), s.handle)
	testwait.Until(t, "it tries", func() bool { return net.Connections() > 0 })
	if c.Err() == nil {
		t.Error("connected to nobody")
	}
	stop()

	const timeout = 5 * time.Second // in which a busy machine connects, once that is possible
	c, _ = consume(t, through, intake.Config{}.WithDialTimeout(timeout), s.handle)
	testwait.Until(t, "the reason shows", func() bool { return strings.Contains(c.Err().Error(), "no answer within 5s") })
	testamqp.WithoutPassword(t, through, c.Err())
	net.Heal(t)
	testwait.Until(t, "it is connected", connected(c))
}

func TestQueueDeletedUnderTheConsumer(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	var s store
	c, _ := consume(t, broker, intake.Config{}, s.handle)
	testwait.Until(t, "it is connected", connected(c))
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(rabbit.Queue, false, false, false); err != nil {
			t.Fatal(err)
		}
	})
	publish(t, newPublisher(t, broker, rabbitmq.Config{}), 1)
	testwait.Until(t, "the event is stored", func() bool { return s.has(1) })
}

func TestQueueWithOtherArguments(t *testing.T) {
	broker := teststack.AMQP(t)
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if _, err := ch.QueueDeclare(rabbit.Queue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	})
	err := intake.Declare(t.Context(), broker)
	if err == nil || !strings.Contains(err.Error(), rabbit.Queue) || !strings.Contains(err.Error(), "406") {
		t.Errorf("err = %v, want a 406 that names the queue", err)
	}
	var s store
	c, _ := consume(t, broker, intake.Config{}, s.handle)
	testwait.Until(t, "the reason shows", func() bool { return strings.Contains(c.Err().Error(), "406") })
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(rabbit.Queue, false, false, false); err != nil {
			t.Fatal(err)
		}
	})
	testwait.Until(t, "it is connected", connected(c))
	declare(t, broker) // what is there already does not matter
}

// send publishes any message, and waits for the confirm: the broker may drop
// what it has not confirmed when the channel is closed.
func send(t *testing.T, broker string, message amqp.Publishing) {
	t.Helper()
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		confirm, err := ch.PublishWithDeferredConfirm(rabbit.Exchange, "event.odd", true, false, message)
		if err != nil {
			t.Fatal(err)
		}
		if acked, err := confirm.WaitContext(t.Context()); err != nil || !acked {
			t.Fatalf("confirmed %v, err %v", acked, err)
		}
	})
}
