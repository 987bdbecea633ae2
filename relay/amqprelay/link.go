package amqprelay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
)

// most bounds the messages that wait for a confirm on one channel. The client library stops
// reading from the socket while returns are full, so each of them has room for its return.
const most = 512

// A link publishes on one session, many messages at a time. A returned message is known from an
// accepted one by its id: the broker returns it before it confirms it, and the client library
// hands on the return before the confirm.
type link struct {
	session   *rabbit.Session
	blockings chan amqp.Blocking
	slots     chan struct{} // has a token for each message under way
	maxSize   atomic.Int64  // that the broker has named when it closed the channel
	blocked   atomic.Pointer[string]

	spoilt chan struct{} // closed by the first message that cannot be sent
	spoil  sync.Once
	ended  chan struct{} // closed after reason is set
	reason error

	mu       sync.Mutex
	returns  chan amqp.Return
	returned map[string]bool // by message id
}

func newLink(s *rabbit.Session) *link {
	return &link{
		session:   s,
		blockings: s.Conn.NotifyBlocked(make(chan amqp.Blocking, 16)),
		returns:   s.Channel.NotifyReturn(make(chan amqp.Return, 2*most)),
		slots:     make(chan struct{}, most),
		spoilt:    make(chan struct{}),
		ended:     make(chan struct{}),
		returned:  make(map[string]bool),
	}
}

// over reports whether the link is of no more use.
func (l *link) over() bool {
	select {
	case <-l.ended:
		return true
	case <-l.spoilt:
		return true
	default:
		return l.session.Channel.IsClosed()
	}
}

// watch waits for the end of the link, and returns its reason.
func (l *link) watch(ctx context.Context) error {
	defer close(l.ended)
	for {
		select {
		case b := <-l.blockings:
			l.blocked.Store(nil)
			if b.Active {
				l.blocked.Store(&b.Reason)
			}
		case reason := <-l.session.Closed:
			l.reason = rabbit.Reason(reason)
			if limit, tooLarge := rabbit.MaxSize(reason); tooLarge {
				l.maxSize.Store(int64(limit))
			}
			return l.reason
		case <-l.spoilt:
			l.reason = errors.New("a message could not be sent")
			return l.reason
		case <-ctx.Done():
			l.reason = errClosed
			return l.reason
		}
	}
}

// publish sends a message and waits for its confirm.
func (l *link) publish(ctx context.Context, exchange, key string, message amqp.Publishing) error {
	if reason := l.blocked.Load(); reason != nil {
		return unavailable("blocked by the broker", fmt.Errorf("%.80q", *reason))
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return unavailable("send", ctx.Err())
	}
	l.takeReturns() // of messages whose confirm nobody awaits
	confirm, err := l.session.Channel.PublishWithDeferredConfirm(exchange, key, true, false, message)
	if err != nil {
		l.spoil.Do(func() { close(l.spoilt) })
		return unavailable("send", err)
	}
	select {
	case <-confirm.Done():
		return l.settle(confirm, message.MessageId)
	case <-l.ended:
		return unavailable("connection lost before the confirm", l.reason)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errUnconfirmed, ctx.Err())
	}
}

// settle returns the outcome of a message whose confirm is done. When the channel was closed, the
// confirm is done, too, but not acknowledged.
func (l *link) settle(confirm *amqp.DeferredConfirmation, id string) error {
	back := l.wasReturned(id)
	switch {
	case confirm.Acked() && back:
		return ErrUnroutable
	case confirm.Acked():
		return nil
	case !l.session.Channel.IsClosed():
		return errRefused
	}
	<-l.ended
	return unavailable("connection lost before the confirm", l.reason)
}

// wasReturned reports whether the message with this id came back.
func (l *link) wasReturned(id string) bool {
	l.takeReturns()
	l.mu.Lock()
	defer l.mu.Unlock()
	back := l.returned[id]
	delete(l.returned, id)
	return back
}

// takeReturns notes the messages that came back.
func (l *link) takeReturns() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.returns) > 0 {
		back := <-l.returns
		l.returned[back.MessageId] = true
	}
}
