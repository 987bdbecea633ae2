package intake

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/rabbit"
)

// Diagnose returns what keeps guard-monitor from the events on the broker at url. It
// declares what is there already, as a Consumer does, and takes no message.
func Diagnose(ctx context.Context, url string) []doctor.Finding {
	s, err := rabbit.Open(ctx, url, rabbit.Config{Name: "doctor"}, func(*amqp.Channel) error { return nil })
	if err != nil {
		return []doctor.Finding{doctor.EventsBroker.Failed("RabbitMQ", err)}
	}
	defer s.Close()
	for _, try := range []func(*amqp.Channel) error{lookForAll, declareAll, mayRead} {
		ch, err := s.Conn.Channel() // an error ends it
		if err == nil {
			err = try(ch)
		}
		if err == nil {
			continue
		}
		found := rabbit.Finding("RabbitMQ", err)
		if refusal, ok := errors.AsType[*amqp.Error](err); ok && refusal.Code == amqp.NotFound {
			found.Severity = doctor.Warning // guard-monitor makes it when it starts
		}
		return []doctor.Finding{found}
	}
	return nil
}

// lookForAll returns an error if one of the exchanges or queues is missing.
func lookForAll(ch *amqp.Channel) error {
	for name, kind := range map[string]string{rabbit.Exchange: amqp.ExchangeTopic, DeadExchange: amqp.ExchangeFanout} {
		if err := ch.ExchangeDeclarePassive(name, kind, true, false, false, false, nil); err != nil {
			return fmt.Errorf("look for exchange %s: %w", name, err)
		}
	}
	for _, name := range []string{rabbit.Queue, HeartbeatQueue, DeadQueue} {
		if _, err := ch.QueueDeclarePassive(name, true, false, false, false, nil); err != nil {
			return fmt.Errorf("look for queue %s: %w", name, err)
		}
	}
	return nil
}

// mayRead asks for a consumer with an argument of the wrong type. The broker looks at the
// user's rights first, so its refusal of the argument says that reading is allowed.
func mayRead(ch *amqp.Channel) error {
	_, err := ch.Consume(rabbit.Queue, "", false, false, false, false, amqp.Table{"x-priority": "none"})
	if refusal, ok := errors.AsType[*amqp.Error](err); ok && refusal.Code == amqp.PreconditionFailed {
		return nil
	}
	if err == nil {
		err = errors.New("the broker took a consumer with a wrong argument")
	}
	return fmt.Errorf("read %s: %w", rabbit.Queue, err)
}
