package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/notify"
)

// diagnoseTime bounds one answer of the broker. One that has no memory or disk answers
// nobody who publishes.
const diagnoseTime = 5 * time.Second

var _ doctor.Diagnoser = (*Publisher)(nil)

// Diagnose returns what keeps events from the monitor, on a connection of its own. It
// publishes nothing. It is a part of belay.Doctor.
func (p *Publisher) Diagnose(ctx context.Context) (found []doctor.Finding) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	dialer := p.dialer.Clone()
	session, err := dialer.Dial(ctx, func(*amqp.Channel) error { return nil })
	if err != nil {
		return []doctor.Finding{doctor.EventsBroker.Failed(dialer.Addr(), err)}
	}
	defer session.Close()
	if err := tryPublish(ctx, session); err != nil {
		return []doctor.Finding{rabbit.Finding(dialer.Addr(), fmt.Errorf("publish to %s: %w", rabbit.Exchange, err))}
	}
	queue, err := session.Inspect(rabbit.Queue, diagnoseTime)
	switch {
	case err != nil:
		return []doctor.Finding{rabbit.Finding(dialer.Addr(), fmt.Errorf("look for %s: %w", rabbit.Queue, err))}
	case queue.Consumers == 0:
		return []doctor.Finding{doctor.EventsReader.Found(dialer.Addr(), "nobody reads %s, where %d events wait", rabbit.Queue, queue.Messages)}
	}
	return nil
}

// tryPublish publishes an event in a transaction and rolls that back: the broker looks for
// the exchange and for the right to write to it, and delivers nothing.
func tryPublish(ctx context.Context, s *rabbit.Session) error {
	key := rabbit.EventKey(string(notify.VerdictLost))
	return errors.Join(
		s.Channel.Tx(),
		s.Channel.PublishWithContext(ctx, rabbit.Exchange, key, false, false, amqp.Publishing{}),
		s.Channel.TxRollback())
}
