package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/inbox/amqpinbox"
	"github.com/belaygo/belay/relay"
	"github.com/belaygo/belay/relay/amqprelay"
)

// A post takes the messages out of the database and applies each by an inbox: half of them come back from
// the broker, and half are applied by a function of the relay. Each process has one.
type post struct {
	by     string // who applies them
	url    string // of the broker
	queue  string
	log    *slog.Logger
	box    *inbox.Inbox
	broker amqprelay.Publisher
	relay  *relay.Relay

	ctx     context.Context // ends with close
	stop    context.CancelFunc
	running sync.WaitGroup
}

// startPost starts a post on db, whose inbox takes g.
func startPost(by string, db *gorm.DB, g *guard.Guard, url, queue string, log *slog.Logger) (p *post, err error) {
	p = &post{by: by, url: url, queue: queue, log: log}
	if p.box, err = inbox.New(g, inbox.Config{Consumer: "chaos"}); err != nil {
		return nil, err
	}
	if p.broker, err = amqprelay.New(url, amqprelay.Config{Timeout: time.Second, DialTimeout: 2 * time.Second, Logger: log}); err != nil {
		return nil, err
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.relay, err = relay.New(db, relay.Config{Logger: log, Routes: []relay.Route{
		{Topic: queue, To: p.broker},
		{Topic: byHand, Handle: p.hand, Until: time.Hour},
	}})
	if err != nil {
		p.stop()
		return nil, err
	}
	p.running.Go(p.serve)
	return p, nil
}

// close ends the relay and the consumer. It goes before the Guard and the database.
func (p *post) close(ctx context.Context) error {
	p.stop()
	err := p.relay.Close(ctx)
	p.running.Wait()
	return errors.Join(err, p.broker.Close(ctx))
}

// apply returns the operation that applies a message.
func (p *post) apply(lane string, body []byte) guard.Op {
	return func(_ context.Context, tx *gorm.DB) error {
		var n note
		if err := json.Unmarshal(body, &n); err != nil {
			return inbox.Rejected(err)
		}
		return tx.Create(&Arrival{Lane: lane, No: n.No, N: n.N, By: p.by}).Error
	}
}

// hand applies a message in the relay's process. It tries for a moment, so that the key is not parked for each
// lock that is away.
func (p *post) hand(ctx context.Context, m relay.Message) error {
	ctx = sideOf(ctx, "hand "+m.ID)
	for try := 1; ; try++ {
		decision, err := p.box.Handle(ctx, inbox.Message{ID: m.ID, Redelivered: m.Attempts > 0}, p.apply(m.Key, m.Body))
		switch {
		case decision == inbox.Ack:
			return nil
		case decision == inbox.Reject:
			return errors.Join(relay.ErrRejected, err)
		case try == 10 || p.ctx.Err() != nil:
			return err
		}
		linger(p.ctx, 100*time.Millisecond)
	}
}

// serve consumes the queue until close, by one connection after the other.
func (p *post) serve() {
	for p.ctx.Err() == nil {
		if err := p.consume(); err != nil {
			p.log.Debug("the queue is left", "error", err)
		}
		linger(p.ctx, 100*time.Millisecond)
	}
}

func (p *post) consume() error {
	conn, err := dialBroker(p.url)
	if err != nil {
		return err
	}
	defer closeBroker(conn) // what is not acknowledged goes back to the queue, in its order
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(16, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(p.queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	box := amqpinbox.Config{Inbox: p.box, Timeout: 10 * time.Second, Logger: p.log}
	box.Handle = func(ctx context.Context, tx *gorm.DB, d amqp.Delivery) error {
		key, _ := d.Headers["belay-key"].(string)
		return p.apply(key, d.Body)(ctx, tx)
	}
	return amqpinbox.Serve(sideOf(p.ctx, "queue of "+p.by), deliveries, box)
}

// dialBroker connects to a broker that may be silent.
func dialBroker(url string) (*amqp.Connection, error) {
	return amqp.DialConfig(url, amqp.Config{Heartbeat: 10 * time.Second, Dial: func(network, addr string) (net.Conn, error) {
		conn, err := net.DialTimeout(network, addr, 2*time.Second)
		if err != nil {
			return nil, err
		}
		return conn, conn.SetDeadline(time.Now().Add(2 * time.Second)) // of the handshake
	}})
}

func closeBroker(conn *amqp.Connection) { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }

// declareQueue makes the queue of a run, of which one consumer at a time has the messages. It goes when
// the test ends, or some time after a test that was killed.
func declareQueue(t *report, url, name string) {
	t.Helper()
	with := func(f func(ch *amqp.Channel) error) error {
		conn, err := dialBroker(url)
		if err != nil {
			return err
		}
		defer closeBroker(conn)
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		return f(ch)
	}
	if err := with(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-single-active-consumer": true, "x-expires": (10 * time.Minute).Milliseconds()})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := with(func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete(name, false, false, false)
			return err
		}); err != nil {
			t.Errorf("delete the queue %s: %v", name, err)
		}
	})
}

// waiting returns how many messages a queue has that no consumer has.
func waiting(url, name string) (int, error) {
	conn, err := dialBroker(url)
	if err != nil {
		return 0, err
	}
	defer closeBroker(conn)
	ch, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
	return q.Messages, err
}
