package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/rabbit"
)

// notices is room for more than can come between two looks at a channel: the
// library stops reading from the socket while one is full.
const notices = 16

// A lane publishes on one session, one message at a time. So a returned message
// is known from a taken one: the broker returns it before it confirms it, and
// the client library hands on the return before it reads the confirm.
type lane struct {
	session   *rabbit.Session
	timeout   time.Duration
	returns   chan amqp.Return
	blockings chan amqp.Blocking
	blocked   error // errBlocked with the broker's reason, or nil
	absence   *absence
}

func newLane(s *rabbit.Session, timeout time.Duration, a *absence) *lane {
	return &lane{
		session:   s,
		timeout:   timeout,
		absence:   a,
		returns:   s.Channel.NotifyReturn(make(chan amqp.Return, notices)),
		blockings: s.Conn.NotifyBlocked(make(chan amqp.Blocking, notices)),
	}
}

// reopen replaces the channel, which the broker has closed. The lane keeps the state of
// the connection.
func (l *lane) reopen() error {
	if err := l.session.Reopen(l.timeout, confirms); err != nil {
		return err
	}
	l.returns = l.session.Channel.NotifyReturn(make(chan amqp.Return, notices))
	return nil
}

// confirms turns on publisher confirms.
func confirms(ch *amqp.Channel) error {
	if err := ch.Confirm(false); err != nil {
		return fmt.Errorf("turn on confirms: %w", err)
	}
	return nil
}

// publish returns the outcome of the request, and an error if the session cannot be
// used any more. After the end of the request's context it still waits for the confirm,
// up to the timeout, because the message is on its way.
func (l *lane) publish(ctx context.Context, r *request) (outcome, spoilt error) {
	if err := r.ctx.Err(); err != nil {
		return err, nil
	}
	l.drain()
	if l.blocked != nil {
		return l.blocked, nil
	}
	if err := l.require(r.queue); err != nil {
		return l.unsent(err)
	}
	fail.Point("rabbitmq/before-send")
	confirm, err := l.session.Channel.PublishWithDeferredConfirm(rabbit.Exchange, r.key, true, false, r.message)
	if err != nil {
		return l.unsent(err)
	}
	fail.Point("rabbitmq/sent")
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	for {
		select {
		case <-confirm.Done():
			return l.settle(confirm, r.message.MessageId)
		case blocking := <-l.blockings:
			if l.setBlocked(blocking); l.blocked != nil {
				return l.blocked, nil
			}
		case <-timer.C:
			err := fmt.Errorf("rabbitmq: no confirm within %v", l.timeout)
			return err, err
		case <-ctx.Done():
			return errClosed, errClosed
		}
	}
}

// settle returns the outcome of a message whose confirm is done. When the channel was
// closed, the confirm is done, too, but not acknowledged.
func (l *lane) settle(confirm *amqp.DeferredConfirmation, id string) (outcome, spoilt error) {
	if confirm.Acked() {
		if l.returned(id) {
			return ErrUnroutable, nil
		}
		return nil, nil
	}
	if !l.session.Channel.IsClosed() {
		return errRefused, nil
	}
	return l.lost()
}

// require has the broker close the channel, and with it drop the next message,
// if the queue does not exist. It does not wait for an answer: the broker sends
// none if the queue is there, and takes the message only after it has looked. After
// an absence of the queue it first waits for the answer that the absence has ended.
func (l *lane) require(queue string) error {
	if queue == "" {
		return nil
	}
	if l.absence.noticed {
		q, err := l.session.Inspect(queue, l.timeout)
		if err != nil {
			return err
		}
		if !l.absence.ended(q.Consumers) {
			return errUnbound
		}
	}
	_, err := l.session.Channel.QueueDeclarePassive(queue, true, false, false, true, nil)
	return err
}

// unsent judges a message that could not be sent, for the given reason or since
// the broker has closed the channel already.
func (l *lane) unsent(err error) (outcome, spoilt error) {
	if l.session.Channel.IsClosed() {
		return l.lost()
	}
	if errors.Is(err, ErrUnroutable) {
		return err, nil
	}
	err = fmt.Errorf("rabbitmq: send: %w", err)
	return err, err
}

// lost returns the outcome of a message whose channel was closed.
func (l *lane) lost() (outcome, spoilt error) {
	reason := <-l.session.Closed
	spoilt = rabbit.Reason(reason)
	if reason != nil && reason.Code == amqp.NotFound {
		*l.absence = absence{noticed: true} // a missing exchange takes the queue's binding with it
		return fmt.Errorf("%w: %w", ErrUnroutable, spoilt), spoilt
	}
	if _, tooLarge := rabbit.MaxSize(reason); tooLarge {
		return fmt.Errorf("%w: %w", errTooLarge, spoilt), spoilt
	}
	return fmt.Errorf("rabbitmq: connection lost before the confirm: %w", spoilt), spoilt
}

// returned reports whether the message with this id came back. It drops the returns of
// earlier messages whose confirm was not awaited.
func (l *lane) returned(id string) bool {
	found := false
	for len(l.returns) > 0 {
		back := <-l.returns
		found = found || back.MessageId == id
	}
	return found
}

// drain handles the returns and notices since the last call.
func (l *lane) drain() {
	l.returned("")
	for len(l.blockings) > 0 {
		l.setBlocked(<-l.blockings)
	}
}

func (l *lane) setBlocked(b amqp.Blocking) {
	l.blocked = nil
	if b.Active {
		l.blocked = fmt.Errorf("%w: %.80q", errBlocked, b.Reason)
	}
}
