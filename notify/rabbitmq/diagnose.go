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

// diagnoseTime is how long a Diagnose takes at most.
const diagnoseTime = 5 * time.Second

// Diagnose returns the faults that keep events from the monitor, on a new connection.
// It publishes nothing. It is a part of belay.Doctor.
func (p *publisher) Diagnose(ctx context.Context) (found []doctor.Finding) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	dialer := p.dialer.Clone()
	session, err := dialer.Dial(ctx, func(*amqp.Channel) error { return nil })
	if err != nil {
		return []doctor.Finding{doctor.EventsBroker.Failed(dialer.Addr(), err)}
	}
	defer session.Close()
	if err := tryPublish(ctx, session); err != nil {
		found := rabbit.Finding(dialer.Addr(), fmt.Errorf("publish to %s: %w", rabbit.Exchange, err))
		if errors.Is(err, errBlocked) {
			found = found.Fixed("give the broker memory or disk: rabbitmqctl status names its alarms")
		}
		return []doctor.Finding{found}
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

// tryPublish publishes an event in a transaction and rolls that back: the broker checks the
// exchange and the right to write to it, and delivers nothing. It returns errBlocked as soon
// as the broker reports that, and ends with ctx.
func tryPublish(ctx context.Context, s *rabbit.Session) error {
	defer context.AfterFunc(ctx, s.Cut)()
	reasons := make(chan string, 1)
	go cutWhenBlocked(s, reasons)
	err := rollBack(ctx, s.Channel)
	select {
	case reason := <-reasons:
		return fmt.Errorf("%w: %s", errBlocked, reason)
	default:
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
	return err
}

// rollBack publishes in a transaction that it rolls back. If the broker closes the channel before
// the rollback is sent, rollBack returns the broker's reason.
func rollBack(ctx context.Context, ch *amqp.Channel) error {
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	key := rabbit.EventKey(string(notify.VerdictLost))
	err := errors.Join(
		ch.Tx(),
		ch.PublishWithContext(ctx, rabbit.Exchange, key, false, false, amqp.Publishing{}),
		ch.TxRollback())
	if !errors.Is(err, amqp.ErrClosed) {
		return err
	}
	select {
	case reason, ok := <-closed:
		if ok {
			return reason
		}
	case <-ctx.Done():
	}
	return err
}

// cutWhenBlocked sends the first reason why the broker takes no messages, and then cuts the session,
// so that calls which wait for an answer end. It returns when the connection has ended.
func cutWhenBlocked(s *rabbit.Session, reasons chan<- string) {
	for b := range s.Conn.NotifyBlocked(make(chan amqp.Blocking)) {
		select {
		case reasons <- b.Reason:
			s.Cut()
		default:
		}
	}
}
