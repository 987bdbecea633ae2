package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/once"
)

// Config sets up an Inbox. Consumer is required.
type Config struct {
	// Consumer names the group of processes that share the messages, 1 to 64 characters of
	// a-z, 0-9, ".", "_" and "-": each group handles a message once.
	// No two services of a broker may have one name: ids of messages that they send by guard.Send come
	// from it, and may be equal.
	Consumer string
}

// An Inbox handles the messages of one consumer. It is safe for concurrent use.
type Inbox struct {
	guard *guard.Guard
	cfg   Config
}

// New returns an Inbox whose operations g runs.
func New(g *guard.Guard, cfg Config) (*Inbox, error) {
	if g == nil {
		return nil, errors.New("inbox: guard is nil")
	}
	b := &Inbox{g, cfg}
	if err := b.request(Message{ID: "any"}).Validate(); err != nil {
		return nil, fmt.Errorf("inbox: Consumer: %w", err)
	}
	return b, nil
}

// A Message is a message that a broker has delivered.
type Message struct {
	// ID is the producer's id: equal for each delivery, different for each message. It is
	// never replaced by a hash of the body, because two equal payments are two. A message
	// without an id is rejected.
	ID string
	// Body is compared: a message with a known id and another body is rejected. nil is
	// not compared. Leave it nil for messages of guard.Send: their ids are unique, and an operation that
	// runs again, as after a lost commit, may send another body under the id of its first run.
	Body []byte
	// Redelivered is set if the broker may have delivered the message before. Handle then
	// first reads, without a lock, whether it has taken effect.
	Redelivered bool
}

// A Decision is the answer to the broker about a message.
type Decision int

const (
	// Retry: the message has not taken effect as far as is known. Deliver it again.
	Retry Decision = iota
	// Ack: the message has taken effect, now or before.
	Ack
	// Reject: the message will never take effect. It belongs to the dead letters.
	Reject
)

func (d Decision) String() string {
	switch d {
	case Retry:
		return "retry"
	case Ack:
		return "ack"
	case Reject:
		return "reject"
	}
	return fmt.Sprintf("Decision(%d)", int(d))
}

var errRejected = errors.New("inbox: message rejected")

var errNoID = fmt.Errorf("%w: it has no id, so nothing shows whether it has taken effect before: "+
	"its producer must set one, such as MessageId of AMQP, or take one from the body: %w", errRejected, once.ErrRequest)

// Rejected returns an error with which an operation has its message rejected.
func Rejected(err error) error {
	if err == nil {
		return errRejected
	}
	return fmt.Errorf("%w: %w", errRejected, err)
}

// Handle runs op for a message in one transaction, unless the message has taken effect
// before. The error is the reason why the decision is not Ack. The operation was rolled
// back, or its outcome is unknown until the next delivery. Name the rows that op
// changes by guard.Also.
//
// A message whose op inserts an existing row, under a key that Also names, is rejected with
// guard.ErrExists: another message, or another program, has made the row. If that is a
// success, let op return nil for the *dbguard.ConflictError.
//
// A message with a key that can never be locked, as of an account in its body that is no UTF-8, or
// with too many keys, is rejected with lock.ErrInvalidKey.
//
// A message whose op has called a procedure that ended the transaction, on MySQL or MariaDB, is
// rejected with guard.ErrUnknown and guard.ErrTxControl: it may have taken effect in part.
func (b *Inbox) Handle(ctx context.Context, m Message, op guard.Op, opts ...guard.Option) (Decision, error) {
	if m.ID == "" {
		return Reject, errNoID
	}
	r := b.request(m)
	if m.Redelivered {
		if done, _ := b.guard.Served(ctx, r); done { // an error or a mismatch is left to Do
			return Ack, nil
		}
	}
	err := b.guard.Do(ctx, r.Key(), op, append([]guard.Option{guard.For(r)}, opts...)...)
	switch {
	case err == nil, errors.Is(err, guard.ErrDuplicate):
		return Ack, nil
	case errors.Is(err, once.ErrRequest), errors.Is(err, lock.ErrInvalidKey), errors.Is(err, guard.ErrMismatch), errors.Is(err, guard.ErrExists):
		return Reject, fmt.Errorf("%w: %w", errRejected, err)
	case errors.Is(err, errRejected):
		return Reject, err
	case errors.Is(err, guard.ErrUnknown) && errors.Is(err, guard.ErrTxControl): // no delivery finds it out
		return Reject, fmt.Errorf("%w: %w", errRejected, err)
	}
	return Retry, err
}

func (b *Inbox) request(m Message) once.Request {
	r := once.Request{Operation: b.cfg.Consumer, Scope: once.Anyone, ID: m.ID}
	if m.Body != nil {
		r.Print = once.PrintOf(1, m.Body)
	}
	return r
}
