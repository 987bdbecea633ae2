package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
)

// deadInterval is the time between two counts of the dead letters.
const deadInterval = 15 * time.Second

// MaxBody is how large a message may be, in bytes, to be decoded: an event has some
// kilobytes.
const MaxBody = 256 << 10

// Decode returns the event that is the body of a message.
func Decode(body []byte) (ev notify.Event, err error) {
	if len(body) > MaxBody {
		return ev, fmt.Errorf("it has %d bytes, and may have %d", len(body), MaxBody)
	}
	err = ev.UnmarshalJSON(body)
	return ev, err
}

// A reader gives the messages of one session to the handler.
type reader struct {
	*Consumer
	session   *rabbit.Session
	messages  <-chan amqp.Delivery
	cancelled <-chan string // consumer tags
	handle    Handler
	handled   bool // a message was dealt with
}

// subscribe declares the topology and begins to consume.
func (r *reader) subscribe(ch *amqp.Channel) (err error) {
	if err := declareEvents(ch); err != nil {
		return err
	}
	r.cancelled = ch.NotifyCancel(make(chan string, 1))
	r.messages, err = r.read(ch, rabbit.Queue)
	return err
}

// run returns why the session can no longer be used.
func (r *reader) run(ctx context.Context) error {
	counting, stop := context.WithCancel(ctx)
	uncounted := make(chan error, 1)
	var counter sync.WaitGroup
	counter.Go(func() { uncounted <- r.countDead(counting) })
	defer counter.Wait()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case reason := <-r.session.Closed:
			return rabbit.Reason(reason)
		case err := <-uncounted:
			return err
		case <-r.cancelled:
			return r.session.Over()
		case d, ok := <-r.messages:
			if !ok {
				return r.session.Over()
			}
			if err := r.take(ctx, &d); err != nil {
				return err
			}
			r.handled = true
		}
	}
}

// countDead counts the dead letters until ctx ends, also while the handler
// fails. The broker adds some by itself, those that have come to the
// DeliveryLimit. An error means that the session is over; the next one declares
// the queue if it is gone.
func (r *reader) countDead(ctx context.Context) error {
	defer r.setDead(0, false) // an old number says nothing
	for {
		queue, err := r.session.Inspect(DeadQueue, r.cfg.dialTimeout)
		if err != nil {
			return fmt.Errorf("count dead letters: %w", err)
		}
		r.setDead(queue.Messages, true)
		if err := wait.Sleep(ctx, deadInterval, nil); err != nil {
			return err
		}
	}
}

// take deals with one message to the end. An error means that the session is
// over; the broker then delivers the message again.
func (r *reader) take(ctx context.Context, d *amqp.Delivery) error {
	r.received.Inc()
	ev, err := Decode(d.Body) // whatever content type the message claims
	if err != nil {
		return r.deadLetter(d, err)
	}
	sender := SentBy(d, r.session.User)
	if err := r.cfg.Admit(sender, ev.Service); err != nil {
		r.unbound.Inc()
		return r.deadLetter(d, err)
	}
	fail.Point("intake/received")
	err = r.store(ctx, ev, d.Body, sender)
	switch {
	case errors.Is(err, ErrReject):
		return r.deadLetter(d, err)
	case err != nil:
		return err
	}
	fail.Point("intake/stored")
	if err := d.Ack(false); err != nil {
		return fmt.Errorf("acknowledge event: %w", err)
	}
	fail.Point("intake/acknowledged")
	r.stored.Inc()
	return nil
}

// store calls the handler until it takes or rejects the event. The delivery is
// kept meanwhile: giving it back would only wear out its delivery limit. Nothing
// else is read, which Err tells. So it goes on when the session ends: the next one
// would only take all messages again, and when it ends bring them nearer to their
// limits.
func (r *reader) store(ctx context.Context, ev notify.Event, raw []byte, sender string) error {
	pause := wait.Backoff{Min: rabbit.MinPause, Max: rabbit.MaxPause}
	for failed := false; ; failed = true {
		err := r.handle(ctx, ev, raw, sender)
		if err == nil || errors.Is(err, ErrReject) {
			if failed {
				r.setErr(nil)
			}
			return err
		}
		r.setErr(fmt.Errorf("%w: %w", ErrHandler, err))
		r.failures.Inc()
		delay := pause.Next()
		r.cfg.Logger.Warn("event is not stored", "event_id", ev.ID, "error", err, "retry_in", delay)
		_ = wait.Sleep(ctx, delay, nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// deadLetter lets the broker take the message to the dead letters.
func (r *reader) deadLetter(d *amqp.Delivery, reason error) error {
	r.letters.Warn(context.Background(), r.cfg.Logger, "message goes to the dead letters",
		slog.String("message_id", d.MessageId), slog.String("type", d.Type), slog.Int("bytes", len(d.Body)), slog.Any("error", reason))
	if err := d.Reject(false); err != nil {
		return fmt.Errorf("reject message: %w", err)
	}
	r.deadLettered.Inc()
	return nil
}
