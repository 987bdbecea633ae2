package amqprelay_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
	"github.com/belaygo/belay/relay/amqprelay"
)

var bg = context.Background()

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

// declare declares a durable queue.
func declare(tb testing.TB, url, queue string, args amqp.Table) {
	tb.Helper()
	testamqp.OnChannel(tb, url, func(ch *amqp.Channel) {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
			tb.Fatal(err)
		}
	})
}

// take takes all messages of a queue.
func take(tb testing.TB, url, queue string) (all []amqp.Delivery) {
	tb.Helper()
	testamqp.OnChannel(tb, url, func(ch *amqp.Channel) {
		for {
			d, ok, err := ch.Get(queue, true)
			if err != nil {
				tb.Fatal(err)
			}
			if !ok {
				return
			}
			all = append(all, d)
		}
	})
	return all
}

func ids(all []amqp.Delivery) (list []string) {
	for _, d := range all {
		list = append(list, d.MessageId)
	}
	return list
}

func open(tb testing.TB, url string, cfg amqprelay.Config) amqprelay.Publisher {
	tb.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	p, err := amqprelay.New(url, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(bg); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// relayTo starts a relay on an empty database.
func relayTo(tb testing.TB, p relay.Publisher) *gorm.DB {
	tb.Helper()
	db := testdb.OpenSQLite(tb, filepath.Join(tb.TempDir(), "relay.db"))
	if err := relay.Migrate(bg, db); err != nil {
		tb.Fatal(err)
	}
	r, err := relay.New(db, relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: p}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(bg); err != nil {
			tb.Error(err)
		}
	})
	return db
}

func store(tb testing.TB, db *gorm.DB, rows ...message.Row) {
	tb.Helper()
	base, err := message.Open(db, "test")
	if err == nil {
		err = base.InTx(bg, func(c sqldb.Conn) error { return message.Insert(bg, c, base.Dialect, rows) })
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// rows are the messages of a key to a queue.
func rows(queue, key string, n int) (list []message.Row) {
	for i := range n {
		list = append(list, message.Row{MessageID: fmt.Sprintf("%s/%02d", key, i), Key: key, Topic: queue, Body: []byte("body")})
	}
	return list
}

func idsOf(list []message.Row) (ids []string) {
	for _, r := range list {
		ids = append(ids, r.MessageID)
	}
	return ids
}

func left(tb testing.TB, db *gorm.DB) (n int) {
	tb.Helper()
	if err := db.Raw("SELECT COUNT(*) FROM belay_message").Scan(&n).Error; err != nil {
		tb.Fatal(err)
	}
	return n
}

func message1(queue string) relay.Message {
	return relay.Message{
		ID: "1", Key: "item:7", Topic: queue, Time: time.Unix(1_800_000_000, 0),
		Headers: map[string]string{"Content-Type": "application/json", "a": "é"}, Body: []byte("{}"),
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	url := teststack.AMQP(t)
	declare(t, url, "sales", nil)
	p := open(t, url, amqprelay.Config{})
	if err := errors.Join(p.Ping(bg), p.Publish(bg, message1("sales"))); err != nil {
		t.Fatal(err)
	}
	d := take(t, url, "sales")[0]
	if d.MessageId != "1" || d.Type != "sales" || d.ContentType != "application/json" || d.DeliveryMode != amqp.Persistent ||
		d.Timestamp.Unix() != 1_800_000_000 || d.Headers["belay-key"] != "item:7" || d.Headers["belay-message"] != "1" || d.Headers["a"] != "é" || string(d.Body) != "{}" {
		t.Errorf("arrived: %+v", d)
	}
}

// Many messages under way: only the one without a queue comes back.
func TestReturn(t *testing.T) {
	t.Parallel()
	url := teststack.AMQP(t)
	declare(t, url, "sales", nil)
	p := open(t, url, amqprelay.Config{})
	const n = 200
	errs := make(chan error, n)
	for i := range n {
		go func() {
			m := message1("sales")
			if m.ID = fmt.Sprint(i); i%10 == 0 {
				m.Topic = "nowhere"
			}
			err := p.Publish(bg, m)
			if errors.Is(err, amqprelay.ErrUnroutable) != (i%10 == 0) || err != nil && i%10 != 0 {
				err = fmt.Errorf("message %d: %w", i, err)
			} else {
				err = nil
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := len(take(t, url, "sales")); got != n-n/10 {
		t.Errorf("%d messages arrived", got)
	}
}

// A message without a queue waits, and its followers do, until the queue is there.
func TestQueueIsMissing(t *testing.T) {
	t.Parallel()
	url := teststack.AMQP(t)
	declare(t, url, "sales", nil)
	db := relayTo(t, open(t, url, amqprelay.Config{}))
	late := rows("late", "a", 20)
	store(t, db, slices.Concat(late, rows("sales", "b", 20))...)
	testwait.Until(t, "the other key is sent", func() bool { return testamqp.Depth(t, url, "sales") == 20 })
	if n := left(t, db); n < 20 {
		t.Fatalf("%d messages are left", n)
	}
	declare(t, url, "late", nil)
	testwait.Until(t, "all are sent", func() bool { return left(t, db) == 0 })
	if got := ids(take(t, url, "late")); !slices.Equal(got, idsOf(late)) {
		t.Errorf("arrived: %v", got)
	}
}

// A queue that is full refuses messages. They arrive once it has room, in their order.
func TestQueueIsFull(t *testing.T) {
	t.Parallel()
	url := teststack.AMQP(t)
	declare(t, url, "full", amqp.Table{"x-max-length": int32(5), "x-overflow": "reject-publish"})
	db := relayTo(t, open(t, url, amqprelay.Config{}))
	sent := rows("full", "a", 12)
	store(t, db, sent...)
	var got []string
	testwait.Until(t, "all are sent", func() bool {
		got = append(got, ids(take(t, url, "full"))...)
		return left(t, db) == 0 && testamqp.Depth(t, url, "full") == 0
	})
	if !slices.Equal(got, idsOf(sent)) {
		t.Errorf("arrived: %v", got)
	}
}

// While the broker is away nothing is lost, and nothing counts against the messages.
func TestBrokerIsAway(t *testing.T) {
	t.Parallel()
	direct := teststack.AMQP(t)
	declare(t, direct, "sales", nil)
	net, through := testamqp.NewProxy(t, direct)
	p := open(t, through, amqprelay.Config{})
	db := relayTo(t, p)
	first := rows("sales", "a", 20)
	store(t, db, first[:10]...)
	testwait.Until(t, "the first are sent", func() bool { return left(t, db) == 0 })
	net.Refuse()
	store(t, db, first[10:]...)
	testwait.Until(t, "the loss is known", func() bool { return errors.Is(p.Publish(bg, message1("sales")), relay.ErrUnavailable) })
	if waiting, err := relay.List(bg, db, 10); err != nil || len(waiting) > 0 {
		t.Errorf("waiting: %v %v", waiting, err)
	}
	if n := left(t, db); n != 10 {
		t.Errorf("%d messages are left", n)
	}
	net.Heal(t)
	testwait.Until(t, "all are sent", func() bool { return left(t, db) == 0 })
	if got := once(ids(take(t, direct, "sales"))); !slices.Equal(got, idsOf(first)) {
		t.Errorf("arrived: %v", got)
	}
}

// once drops the ids that have occurred before, and those that no relay has sent.
func once(ids []string) (list []string) {
	for _, id := range ids {
		if strings.Contains(id, "/") && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := amqprelay.New("http://host", amqprelay.Config{}); err == nil {
		t.Error("no error for a wrong URL")
	}
	if _, err := amqprelay.New("amqp://host", amqprelay.Config{Timeout: -1}); err == nil {
		t.Error("no error for a negative Timeout")
	}
	p := open(t, "amqp://127.0.0.1:1", amqprelay.Config{})
	if err := p.Publish(bg, message1("sales")); !errors.Is(err, relay.ErrUnavailable) {
		t.Errorf("error without a broker: %v", err)
	}
	if err := p.Close(bg); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(bg, message1("sales")); !errors.Is(err, relay.ErrUnavailable) {
		t.Errorf("error after Close: %v", err)
	}
	m := message1("sales")
	m.Headers = map[string]string{strings.Repeat("x", 256): "y"}
	if err := p.Publish(bg, m); !errors.Is(err, relay.ErrRejected) {
		t.Errorf("error for a long header: %v", err)
	}
}

// The broker closes the channel on a message that is larger than its max_message_size. The message
// becomes a dead letter, and the others arrive.
func TestMessageIsTooLargeForTheBroker(t *testing.T) {
	t.Parallel()
	server := teststack.StartBroker(t, "relaysize")
	server.Control(t, "eval", "application:set_env(rabbit, max_message_size, 4096), persistent_term:put(max_message_size, 4096).")
	url := server.AMQP(t)
	declare(t, url, "sales", nil)
	db := relayTo(t, open(t, url, amqprelay.Config{}))
	others := rows("sales", "b", 50)
	large := rows("sales", "a", 2)
	large[0].Body = make([]byte, 8<<10)
	store(t, db, slices.Concat(others[:25], large, others[25:])...)
	testwait.Until(t, "the others are sent", func() bool { return left(t, db) == 2 })
	testwait.Until(t, "the large one is a dead letter", func() bool {
		waiting, err := relay.List(bg, db, 10)
		return err == nil && len(waiting) == 1 && waiting[0].ID == "a/00" && waiting[0].Dead
	})
	if got := once(ids(take(t, url, "sales"))); !slices.Equal(got, idsOf(others)) {
		t.Errorf("arrived: %v", got)
	}
}
