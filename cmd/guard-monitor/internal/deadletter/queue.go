package deadletter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/wait"
)

// MaxLetters is how many letters List returns at most.
const MaxLetters = 1000

// List returns the letters that are in the queue, at most limit (and at most
// MaxLetters), and how many there are.
func List(ctx context.Context, brokerURL string, limit int) (letters []Letter, total int, err error) {
	limit = min(limit, MaxLetters)
	total, err = visit(ctx, brokerURL, func(box *mailbox, d *amqp.Delivery) (bool, error) {
		letters = append(letters, letter(d, box.user))
		return len(letters) < limit, nil
	})
	return letters, total, err
}

// Find returns the letters of the queue that have one of the ids, by their id.
func Find(ctx context.Context, brokerURL string, ids []string) (map[string]Letter, error) {
	found := make(map[string]Letter)
	_, err := visit(ctx, brokerURL, func(box *mailbox, d *amqp.Delivery) (bool, error) {
		if l := letter(d, box.user); slices.Contains(ids, l.ID) {
			found[l.ID] = l
		}
		return len(found) < len(ids), nil
	})
	return found, err
}

// Replay publishes the letters that pick chooses to where they were first
// published, and takes them out of the queue. It returns how many. All letters of the queue
// are read: those that stay do not hide those that come after them.
func Replay(ctx context.Context, brokerURL string, pick func(*Letter) bool) (replayed int, err error) {
	_, err = visit(ctx, brokerURL, func(box *mailbox, d *amqp.Delivery) (bool, error) {
		l := letter(d, box.user)
		if !pick(&l) {
			return true, nil
		}
		if err := box.publish(ctx, d, l.Sender); err != nil {
			return false, err
		}
		if err := d.Ack(false); err != nil {
			return false, fmt.Errorf("take letter out of the queue: %w", err)
		}
		box.taken++
		replayed++
		return true, nil
	})
	return replayed, err
}

// visit calls each for the letters of the queue until it returns false. Those that
// it did not acknowledge are back in the queue when visit returns. Letters that come
// later are left out, so that a replayed letter that dies again is not met again.
func visit(ctx context.Context, brokerURL string, each func(*mailbox, *amqp.Delivery) (bool, error)) (total int, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	box := &mailbox{}
	session, err := rabbit.Open(ctx, brokerURL, rabbit.Config{Name: "dead letters"}, box.open)
	if err != nil {
		return 0, err
	}
	box.user = session.User
	defer session.Close()
	defer box.giveBack(ctx)
	for range box.total {
		if ctx.Err() != nil {
			return box.total, ctx.Err()
		}
		d, ok, err := box.Get(intake.DeadQueue, false)
		if err != nil {
			return box.total, fmt.Errorf("fetch letter: %w", err)
		}
		if !ok {
			break
		}
		if more, err := each(box, &d); err != nil || !more {
			return box.total, err
		}
	}
	return box.total, nil
}

const confirmTimeout = 10 * time.Second

// mailbox is a channel with the messages that the broker returned. One message is
// published at a time, and the broker returns it before it confirms it.
type mailbox struct {
	*amqp.Channel
	returned <-chan amqp.Return
	user     string // of guard-monitor
	total    int    // in the queue at the beginning
	taken    int    // out of the queue
}

func (box *mailbox) open(ch *amqp.Channel) error {
	queue, err := ch.QueueDeclarePassive(intake.DeadQueue, true, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("find the queue %s (guard-monitor topology declares it): %w", intake.DeadQueue, err)
	}
	if err := ch.Confirm(false); err != nil {
		return fmt.Errorf("turn on confirms: %w", err)
	}
	box.Channel, box.total = ch, queue.Messages
	box.returned = ch.NotifyReturn(make(chan amqp.Return, 1))
	return nil
}

const (
	returnTimeout = 2 * time.Second
	returnPause   = 10 * time.Millisecond
)

// giveBack returns the letters that were only read to the queue, and waits until
// they are there: the next reader would miss them. If that fails the connection ends,
// and the broker returns them.
func (box *mailbox) giveBack(ctx context.Context) {
	if box.Nack(0, true, true) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
	defer cancel()
	for {
		queue, err := box.QueueDeclarePassive(intake.DeadQueue, true, false, false, false, nil)
		if err != nil || queue.Messages >= box.total-box.taken || wait.Sleep(ctx, returnPause, nil) != nil {
			return
		}
	}
}

// publish sends the message as it was first sent, without the headers that the
// broker added when the message died: it would count the next death with them. The
// broker lets nobody publish under another's name, so a header names the sender.
func (box *mailbox) publish(ctx context.Context, d *amqp.Delivery, sender string) error {
	headers, user := make(amqp.Table), ""
	maps.Copy(headers, d.Headers)
	if sender != "" && box.user != "" {
		user, headers[intake.SenderHeader] = box.user, sender
	}
	maps.DeleteFunc(headers, func(k string, _ any) bool {
		return k == "x-death" || strings.HasPrefix(k, "x-first-death-") || strings.HasPrefix(k, "x-last-death-") || k == "x-delivery-count"
	})
	if err := box.requireQueue(); err != nil {
		return fmt.Errorf("publish letter: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	confirm, err := box.PublishWithDeferredConfirmWithContext(ctx, rabbit.Exchange, d.RoutingKey, true, false, amqp.Publishing{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: amqp.Persistent,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, UserId: user, Body: d.Body,
	})
	if err != nil {
		return fmt.Errorf("publish letter: %w", err)
	}
	taken, err := confirm.WaitContext(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("publish letter: no confirm: %w", err)
	case !taken:
		return errors.New("publish letter: the broker refused it")
	}
	select {
	case r := <-box.returned:
		return fmt.Errorf("publish letter: no queue takes it (%d)", r.ReplyCode)
	default:
		return nil
	}
}

// requireQueue fails if the monitor's queue does not exist. The mandatory flag does
// not show that if another queue is bound to the exchange and takes the letter.
func (box *mailbox) requireQueue() error {
	_, err := box.QueueDeclarePassive(rabbit.Queue, true, false, false, false, nil)
	var reason *amqp.Error
	if errors.As(err, &reason) && reason.Code == amqp.NotFound {
		err = fmt.Errorf("no queue takes it (guard-monitor topology declares %s): %w", rabbit.Queue, err)
	}
	return err
}
