package amqpinbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/inbox/amqpinbox"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/once"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

type Account struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// bank is a service with an account and a queue.
type bank struct {
	t     *testing.T
	db    *gorm.DB
	guard *guardtest.Guard
	conn  *amqp.Connection
	ch    *amqp.Channel
	cfg   amqpinbox.Config
	tries atomic.Int64
}

const queue, dead = "payments", "payments.dead"

func newBank(t *testing.T) *bank {
	t.Helper()
	conn, err := amqp.Dial(teststack.AMQP(t))
	testdb.WantNil(t, err)
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	testdb.WantNil(t, err)
	_, err = ch.QueueDeclare(dead, true, false, false, false, nil)
	testdb.WantNil(t, err)
	_, err = ch.QueueDeclare(queue, true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead,
	})
	testdb.WantNil(t, err)

	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	testdb.WantNil(t, db.AutoMigrate(&Account{}))
	testdb.WantNil(t, once.Migrate(t.Context(), db))
	testdb.WantNil(t, db.Create(&Account{ID: 7}).Error)
	b := &bank{t: t, db: db, guard: guardtest.New(t, db), conn: conn, ch: ch}
	box, err := inbox.New(b.guard.Guard, inbox.Config{Consumer: "bank"})
	testdb.WantNil(t, err)
	b.cfg = amqpinbox.Config{
		Inbox: box, Handle: b.book, Workers: 4, Logger: slog.New(slog.DiscardHandler),
		Options: func(amqp.Delivery) []guard.Option {
			return []guard.Option{guard.Also("account:7", &Account{ID: 7}), guard.Wait(time.Second)}
		},
	}
	return b
}

func (b *bank) book(ctx context.Context, tx *gorm.DB, d amqp.Delivery) error {
	b.tries.Add(1)
	if string(d.Body) == "poison" {
		return inbox.Rejected(errors.New("no payment"))
	}
	return guard.Update(&Account{ID: 7}, func(a *Account) error { a.Cents++; return nil }).Run(ctx, tx)
}

func (b *bank) publish(id, body string) {
	b.t.Helper()
	testdb.WantNil(b.t, b.ch.PublishWithContext(b.t.Context(), "", queue, false, false,
		amqp.Publishing{MessageId: id, Body: []byte(body), DeliveryMode: amqp.Persistent}))
}

// serve serves the queue on a channel of its own, until stop is called.
func (b *bank) serve() (ch *amqp.Channel, stop func() error) {
	b.t.Helper()
	ch, err := b.conn.Channel()
	testdb.WantNil(b.t, err)
	testdb.WantNil(b.t, ch.Qos(8, 0, false))
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	testdb.WantNil(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- amqpinbox.Serve(ctx, deliveries, b.cfg) }()
	return ch, func() error {
		cancel()
		err := <-ended
		ch.Close()
		return err
	}
}

func (b *bank) cents() int64 {
	b.t.Helper()
	var a Account
	testdb.WantNil(b.t, b.db.Take(&a, 7).Error)
	return a.Cents
}

// left is how many messages a queue has.
func (b *bank) left(name string) int {
	b.t.Helper()
	q, err := b.ch.QueueDeclarePassive(name, true, false, false, false, nil)
	testdb.WantNil(b.t, err)
	return q.Messages
}

// TestServe: messages take effect once, also those that come twice, and what never will
// goes to the dead letters.
func TestServe(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	const messages = 20
	for n := range messages {
		for range 1 + n%2 {
			b.publish(fmt.Sprint(n), fmt.Sprint(n))
		}
	}
	b.publish("0", "other content")
	b.publish("", "no id")
	b.publish("poison", "poison")
	_, stop := b.serve()
	testwait.Until(t, "all are settled", func() bool { return b.cents() == messages && b.left(dead) == 3 && b.left(queue) == 0 })
	testdb.WantNil(t, stop())
	if got := b.cents(); got != messages {
		t.Errorf("%d cents, want %d", got, messages)
	}
}

// TestChangedBody: a message of Belay's own that comes again with another body, as after a deploy of its
// producer, has taken effect. One of another producer, or one that only names itself so, is rejected.
func TestChangedBody(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.cfg.Workers = 1
	send := func(id, header, body string) {
		testdb.WantNil(t, b.ch.PublishWithContext(t.Context(), "", queue, false, false, amqp.Publishing{
			MessageId: id, Headers: amqp.Table{"belay-message": header}, Body: []byte(body), DeliveryMode: amqp.Persistent,
		}))
	}
	send("a", "a", `{"v":1}`)
	send("a", "a", `{"v":2,"new":true}`)
	send("b", "another", "b")
	send("b", "another", "changed")
	_, stop := b.serve()
	testwait.Until(t, "all are settled", func() bool { return b.left(queue) == 0 && b.left(dead) == 1 })
	testdb.WantNil(t, stop())
	if got := b.cents(); got != 2 {
		t.Errorf("%d cents, want 2", got)
	}
	if d, _, err := b.ch.Get(dead, true); err != nil || d.MessageId != "b" || b.left(queue)+b.left(dead) != 0 {
		t.Errorf("the first dead letter is %q, %v, and %d messages are left, %d dead", d.MessageId, err, b.left(queue), b.left(dead))
	}
}

// TestRedelivery: a message that was handled, but not acknowledged, is delivered again and
// has no second effect.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.cfg.Workers = 1
	handle := b.cfg.Handle
	first := make(chan *amqp.Channel, 1)
	var once atomic.Bool
	b.cfg.Handle = func(ctx context.Context, tx *gorm.DB, d amqp.Delivery) error {
		if once.CompareAndSwap(false, true) {
			testdb.WantNil(t, (<-first).Close()) // nothing can be acknowledged
		}
		return handle(ctx, tx, d)
	}
	b.publish("a", "a")
	ch, stop := b.serve()
	first <- ch
	testwait.Until(t, "it has taken effect", func() bool { return b.cents() == 1 })
	if err := stop(); !errors.Is(err, amqpinbox.ErrEnded) {
		t.Errorf("Serve = %v, want ErrEnded", err)
	}
	_, stop = b.serve()
	testwait.Until(t, "the queue is empty", func() bool { return b.left(queue) == 0 })
	testdb.WantNil(t, stop())
	if got, tries := b.cents(), b.tries.Load(); got != 1 || tries != 1 {
		t.Errorf("%d cents after %d tries, want 1 and 1", got, tries)
	}
}

// TestOutage: while the table is away messages wait in their place, and none is lost.
func TestOutage(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	testdb.WantNil(t, b.db.Migrator().RenameTable("accounts", "away"))
	for n := range 3 {
		b.publish(fmt.Sprint(n), "")
	}
	_, stop := b.serve()
	testwait.Until(t, "each was tried", func() bool { return b.tries.Load() >= 6 })
	testdb.WantNil(t, b.db.Migrator().RenameTable("away", "accounts"))
	testwait.Until(t, "all have taken effect", func() bool { return b.cents() == 3 })
	testdb.WantNil(t, stop())
	if n := b.left(dead); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// away is an engine that can't be reached for a while.
type away struct {
	lockengine.Engine
	gone  atomic.Bool
	asked atomic.Int64 // in vain
}

func (a *away) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if a.gone.Load() {
		a.asked.Add(1)
		return lockengine.Grant{}, errors.New("nobody listens")
	}
	return a.Engine.Acquire(ctx, r, ttl)
}

// TestOutageOfTheLock: while there are no locks nothing runs, nothing is rejected, and no
// message is delivered so often that the broker drops it.
func TestOutageOfTheLock(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	engine := &away{Engine: b.guard.Engine()}
	locker, err := lock.New(engine, lock.Config{})
	testdb.WantNil(t, err)
	g, err := guard.New(b.db, locker, guard.Config{Service: "bank", Publisher: &b.guard.Events, Logger: b.cfg.Logger})
	testdb.WantNil(t, err)
	t.Cleanup(func() {
		testdb.WantNil(t, errors.Join(g.Close(context.Background()), locker.Close(context.Background())))
	})
	b.cfg.Inbox, err = inbox.New(g, inbox.Config{Consumer: "bank"})
	testdb.WantNil(t, err)

	engine.gone.Store(true)
	const messages = 20
	for n := range messages {
		b.publish(fmt.Sprint(n), "")
	}
	_, stop := b.serve()
	testwait.Until(t, "they are tried again and again", func() bool { return engine.asked.Load() >= 12 })
	if n := b.tries.Load(); n != 0 {
		t.Errorf("%d operations ran without a lock", n)
	}
	engine.gone.Store(false)
	testwait.Until(t, "all have taken effect", func() bool { return b.cents() == messages })
	testdb.WantNil(t, stop())
	if n := b.left(dead); n != 0 || b.tries.Load() != messages {
		t.Errorf("%d dead letters after %d tries, want none after %d", n, b.tries.Load(), messages)
	}
}

// TestPatience: what takes too long goes back to the queue, and so does what is being tried
// when Serve is told to end.
func TestPatience(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.cfg.Handle = func(context.Context, *gorm.DB, amqp.Delivery) error {
		b.tries.Add(1)
		return errors.New("not yet")
	}
	b.cfg.Patience = 90 * time.Millisecond // for one try, which a shorter one would cut short
	b.publish("a", "")
	_, stop := b.serve()
	testwait.Until(t, "it was delivered twice", func() bool { return b.tries.Load() >= 2 })
	b.cfg.Patience = time.Hour
	testdb.WantNil(t, stop())
	testwait.Until(t, "it is back", func() bool { return b.left(queue) == 1 })
	before := b.tries.Load()
	_, stop = b.serve()
	testwait.Until(t, "it is tried", func() bool { return b.tries.Load() > before })
	testdb.WantNil(t, stop())
	testwait.Until(t, "it is back", func() bool { return b.left(queue) == 1 })
}

func TestConfig(t *testing.T) {
	t.Parallel()
	box := new(inbox.Inbox)
	handle := func(context.Context, *gorm.DB, amqp.Delivery) error { return nil }
	for name, cfg := range map[string]amqpinbox.Config{
		"no inbox": {Handle: handle}, "no handler": {Inbox: box}, "workers": {Inbox: box, Handle: handle, Workers: -1},
		"timeout": {Inbox: box, Handle: handle, Timeout: -1}, "patience": {Inbox: box, Handle: handle, Patience: -1},
	} {
		if err := amqpinbox.Serve(t.Context(), nil, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

type Receipt struct {
	ID int64
	No string `gorm:"size:64;uniqueIndex"`
}

// TestRowOfAnotherMessage: a message that meets a row of another one goes to the dead letters.
func TestRowOfAnotherMessage(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	testdb.WantNil(t, b.db.AutoMigrate(&Receipt{}))
	options, book := b.cfg.Options, b.cfg.Handle
	b.cfg.Options = func(d amqp.Delivery) []guard.Option {
		return append(options(d), guard.Also("receipt:1", &Receipt{No: "1"}))
	}
	b.cfg.Handle = func(ctx context.Context, tx *gorm.DB, d amqp.Delivery) error {
		return errors.Join(book(ctx, tx, d), guard.Insert(&Receipt{No: "1"}).Run(ctx, tx))
	}
	b.publish("1", "")
	b.publish("2", "")
	_, stop := b.serve()
	testwait.Until(t, "both are settled", func() bool { return b.cents() == 1 && b.left(dead) == 1 && b.left(queue) == 0 })
	testdb.WantNil(t, stop())
}
