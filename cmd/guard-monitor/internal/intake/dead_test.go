package intake_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

const deadLetters = "belay_consumer_dead_letters"

// A monitor crashes with an event in hand, until the broker itself sends the
// event to the dead letters. No consumer has refused it, and yet the metrics of
// the next one show it.
func TestDeadLettersOfTheBrokerAreCounted(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	publish(t, newPublisher(t, broker, rabbitmq.Config{}), 1)
	testwait.Until(t, "the event is dead", func() bool {
		testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
			if _, _, err := ch.Get(rabbit.Queue, false); err != nil {
				t.Fatal(err)
			}
		})
		return testamqp.Depth(t, broker, intake.DeadQueue) == 1
	})
	var s store
	c, _ := consume(t, broker, intake.Config{}, s.handle)
	testwait.Until(t, "it is counted", func() bool { return testmetric.Sum(t, c, deadLetters) == 1 })
	if n, known := c.DeadLetters(); n != 1 || !known {
		t.Errorf("DeadLetters = %d, %t, want 1", n, known)
	}
	if n := testmetric.Sum(t, c, "belay_consumer_dead_lettered_total"); n != 0 {
		t.Errorf("the consumer has sent %v there itself, want none", n)
	}
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if _, err := ch.QueuePurge(intake.DeadQueue, false); err != nil {
			t.Fatal(err)
		}
	})
	testwait.Until(t, "it is seen that it is gone", func() bool { return testmetric.Sum(t, c, deadLetters) == 0 })
}

// The store is down: the consumer reads nothing more, and still sees what comes to
// the dead letters.
func TestDeadLettersAreCountedWhileTheHandlerFails(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	c, _ := consume(t, broker, intake.Config{}, func(context.Context, notify.Event, []byte, string) error {
		return errors.New("the store is down")
	})
	publish(t, newPublisher(t, broker, rabbitmq.Config{}), 1)
	testwait.Until(t, "the handler fails, and no letter is there", func() bool {
		return testmetric.Sum(t, c, "belay_consumer_handler_failures_total") > 0 && testmetric.Sum(t, c, deadLetters) == 0
	})
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.PublishWithContext(t.Context(), intake.DeadExchange, "", true, false, amqp.Publishing{}); err != nil {
			t.Fatal(err)
		}
	})
	testwait.Until(t, "the letter is counted", func() bool { return testmetric.Sum(t, c, deadLetters) == 1 })
}

// What is too large for an event is not decoded, though it would be one.
func TestLargeMessagesAreDeadLetters(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	var s store
	c, _ := consume(t, broker, intake.Config{}, s.handle)
	testwait.Until(t, "it reads", connected(c))
	large := event(1)
	large.Key = strings.Repeat("x", intake.MaxBody)
	p := newPublisher(t, broker, rabbitmq.Config{})
	if err := p.Publish(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	publish(t, p, 2)
	testwait.Until(t, "the large one is dead, and the next one stored", func() bool {
		return testamqp.Depth(t, broker, intake.DeadQueue) == 1 && s.has(2)
	})
	if s.has(1) || len(s.given) != 1 {
		t.Errorf("%d events were stored, want 1", len(s.given))
	}
}

// While the broker cannot be asked there is no number, which would say that no
// letter is there.
func TestDeadLettersAreUnknownWithoutTheBroker(t *testing.T) {
	broker := teststack.AMQP(t)
	net, through := testamqp.NewProxy(t, broker)
	net.Refuse()
	var s store
	c, stop := consume(t, through, intake.Config{}, s.handle)
	unknown := func() bool { return math.IsNaN(testmetric.Sum(t, c, deadLetters)) }
	if !unknown() {
		t.Error("a number before the first connection")
	}
	for range 2 {
		net.Heal(t)
		testwait.Until(t, "they are counted", func() bool { return testmetric.Sum(t, c, deadLetters) == 0 })
		net.Refuse()
		testwait.Until(t, "nothing is known", unknown)
	}
	net.Heal(t)
	testwait.Until(t, "they are counted", func() bool { return testmetric.Sum(t, c, deadLetters) == 0 })
	stop()
	if !unknown() {
		t.Error("a number after the end of Run")
	}
	if n, known := c.DeadLetters(); n != 0 || known {
		t.Errorf("DeadLetters after the end of Run = %d, %t, want none", n, known)
	}
}
