package deadletter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
)

// MaxLetters is how many letters one call reads at most.
const MaxLetters = 1000

const dialTimeout = 10 * time.Second

// List returns the letters that are in the queue, at most limit (and at most
// MaxLetters), and how many there are.
func List(ctx context.Context, brokerURL string, limit int) (letters []Letter, total int, err error) {
	total, err = visit(ctx, brokerURL, func(_ *mailbox, d *amqp.Delivery) (bool, error) {
		letters = append(letters, letter(d))
		return len(letters) < limit, nil
	})
	return letters, total, err
}

// Replay publishes the letters that pick chooses to where they were first
// published, and takes them out of the queue. It returns how many.
func Replay(ctx context.Context, brokerURL string, pick func(*Letter) bool) (replayed int, err error) {
	_, err = visit(ctx, brokerURL, func(box *mailbox, d *amqp.Delivery) (bool, error) {
		if l := letter(d); !pick(&l) {
			return true, nil
		}
		if err := box.publish(ctx, d); err != nil {
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
	conn, err := dial(ctx, brokerURL)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) })
	defer stop()
	ch, err := conn.Channel()
	if err != nil {
		return 0, said(ctx, "open channel", err)
	}
	queue, err := ch.QueueDeclarePassive(intake.DeadQueue, true, false, false, false, nil)
	if err != nil {
		return 0, said(ctx, "find the queue "+intake.DeadQueue+" (guard-monitor topology declares it)", err)
	}
	if err := ch.Confirm(false); err != nil {
		return 0, said(ctx, "ask for confirms", err)
	}
	box := &mailbox{Channel: ch, returned: ch.NotifyReturn(make(chan amqp.Return, 1))}
	defer func() { box.giveBack(ctx, queue.Messages) }()
	for range min(queue.Messages, MaxLetters) {
		d, ok, err := ch.Get(intake.DeadQueue, false)
		if err != nil {
			return queue.Messages, said(ctx, "fetch letter", err)
		}
		if !ok {
			break
		}
		if more, err := each(box, &d); err != nil || !more {
			return queue.Messages, said(ctx, "", err)
		}
	}
	return queue.Messages, nil
}

// said adds what failed to an error. If ctx has ended, that is the reason.
func said(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if what == "" {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// dial connects to the first node that answers.
func dial(ctx context.Context, brokerURL string) (*amqp.Connection, error) {
	nodes, err := rabbit.ParseURL(brokerURL)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, node := range nodes {
		conn, err := dialNode(ctx, node.URL)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, said(ctx, "connect to "+node.Addr, err))
	}
	return nil, errors.Join(errs...)
}

func dialNode(ctx context.Context, nodeURL string) (*amqp.Connection, error) {
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("belay dead letters")
	return amqp.DialConfig(nodeURL, amqp.Config{
		Properties: properties,
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return conn, conn.SetDeadline(time.Now().Add(dialTimeout)) // the handshake ends it
		},
	})
}

const confirmTimeout = 10 * time.Second

// mailbox is a channel with the messages that the broker returned. One message is
// published at a time, and the broker returns it before it confirms it.
type mailbox struct {
	*amqp.Channel
	returned <-chan amqp.Return
	taken    int // out of the queue
}

const (
	returnTimeout = 2 * time.Second
	returnPause   = 10 * time.Millisecond
)

// giveBack returns the letters that were only read to the queue, which had total
// letters, and waits until they are there: the next reader would miss them. If that
// fails the connection ends, and the broker returns them.
func (box *mailbox) giveBack(ctx context.Context, total int) {
	if box.Nack(0, true, true) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
	defer cancel()
	tick := time.NewTicker(returnPause)
	defer tick.Stop()
	for {
		queue, err := box.QueueDeclarePassive(intake.DeadQueue, true, false, false, false, nil)
		if err != nil || queue.Messages >= total-box.taken {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// publish sends the message as it was first sent, without the headers that the
// broker added when the message died: it would count the next death with them.
func (box *mailbox) publish(ctx context.Context, d *amqp.Delivery) error {
	headers := amqp.Table{}
	for k, v := range d.Headers {
		if k != "x-death" && !strings.HasPrefix(k, "x-first-death-") && !strings.HasPrefix(k, "x-last-death-") && k != "x-delivery-count" {
			headers[k] = v
		}
	}
	if err := box.requireQueue(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	confirm, err := box.PublishWithDeferredConfirmWithContext(ctx, rabbit.Exchange, d.RoutingKey, true, false, amqp.Publishing{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: amqp.Persistent,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
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
func (box *mailbox) requireQueue(ctx context.Context) error {
	_, err := box.QueueDeclarePassive(rabbit.Queue, true, false, false, false, nil)
	var reason *amqp.Error
	if errors.As(err, &reason) && reason.Code == amqp.NotFound {
		err = fmt.Errorf("no queue takes it (guard-monitor topology declares %s): %w", rabbit.Queue, err)
	}
	return said(ctx, "publish letter", err)
}
