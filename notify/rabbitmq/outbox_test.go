package rabbitmq_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// The whole path: the broker is away when the events happen, then it is there
// without a queue, then the monitor comes. Each event is stored.
func TestOutboxToStore(t *testing.T) {
	broker := teststack.AMQP(t)
	net, through := testamqp.NewProxy(t, broker)
	net.Refuse()
	p := newPublisher(t, through, rabbitmq.Config{})
	o, err := outbox.New(openDatabase(t), outbox.Config{Relay: p})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		if err := o.Publish(t.Context(), event(n)); err != nil {
			t.Fatal(err)
		}
	}
	net.Heal(t)
	testwait.Until(t, "an event is unroutable", func() bool { return testmetric.Sum(t, p, "belay_rabbitmq_connections_total") > 0 })

	s := runMonitor(t, broker)
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := testmetric.Sum(t, o, "belay_outbox_backlog"); n != 0 {
		t.Errorf("%v events are left in the outbox", n)
	}
	testwait.Until(t, "all events are stored", func() bool { return s.has(0, 1, 2, 3, 4) })
}

// A newer version has stored an event: the broker gets what is in the table, also
// the members and the verdict that this version does not know.
func TestOlderRelayHandsOnANewerEvent(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	db := openDatabase(t)
	const newer = `{"specversion":"1.0","id":"id-1","source":"/belay/orders","type":"io.github.belaygo.interception.v1",` +
		`"time":"2026-11-21T09:30:07Z","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "later":"\u4e2d",` +
		`"data":{"verdict":"unheard_of","outcome":"odd","service":"orders","count":0,"later":{"a":[1.50]}}}`
	if err := db.Exec("INSERT INTO belay_outbox (event_id, body) VALUES (?, ?)", "id-1", newer).Error; err != nil {
		t.Fatal(err)
	}
	p := newPublisher(t, broker, rabbitmq.Config{})
	o, err := outbox.New(db, outbox.Config{Relay: p})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		got, ok, err := ch.Get(rabbit.Queue, true)
		if err != nil || !ok {
			t.Fatalf("get: %v, %v", ok, err)
		}
		if string(got.Body) != newer {
			t.Errorf("body\n%s\nwant\n%s", got.Body, newer)
		}
		if got.RoutingKey != "event.unheard_of" || got.MessageId != "id-1" || got.AppId != "orders" ||
			got.Headers["traceparent"] != "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" {
			t.Errorf("routing key %s, properties %+v", got.RoutingKey, got)
		}
	})
}

func openDatabase(t *testing.T) *gorm.DB {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "outbox.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := outbox.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}
