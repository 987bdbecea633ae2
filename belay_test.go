package belay_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit bounds every wait; it is reached only when something is broken.
const limit = 30 * time.Second

func open(t *testing.T, cfg belay.Config) *belay.Belay {
	t.Helper()
	b, err := belay.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wantClosed(t, b) })
	return b
}

func wantClosed(t *testing.T, b *belay.Belay) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// onStack is a Config for the servers of the stack, and a queue that gets the events.
func onStack(t *testing.T) (cfg belay.Config, events <-chan amqp.Delivery) {
	t.Helper()
	broker := teststack.AMQP(t)
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	if err := db.AutoMigrate(&Order{}); err != nil {
		t.Fatal(err)
	}
	return belay.Config{
		Service: "shop", DB: db, RedisOptions: &redis.UniversalOptions{Addrs: teststack.Redis(t)}, AMQP: broker,
	}, consume(t, broker)
}

// consume declares what guard-monitor would, and reads it.
func consume(t *testing.T, broker string) <-chan amqp.Delivery {
	t.Helper()
	conn, err := amqp.Dial(broker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	queue, err := ch.QueueDeclare("belay.monitor", true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	err = errors.Join(err, ch.ExchangeDeclare("belay.events", "topic", true, false, false, false, nil),
		ch.QueueBind(queue.Name, "#", "belay.events", false, nil))
	if err != nil {
		t.Fatal(err)
	}
	events, err := ch.Consume(queue.Name, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestOpenSQL: a Belay on a pool of a program without GORM serves requests.
func TestOpenSQL(t *testing.T) {
	cfg, _ := onStack(t)
	pool, err := cfg.DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	cfg.DB, cfg.SQL, cfg.Once = nil, pool, new(once.PurgerConfig)
	b := open(t, cfg)
	key := teststack.Key(t, "order:sql")
	place := func(ctx context.Context, tx *sql.Tx) (string, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders (no) VALUES (?)", key)
		return "placed", err
	}
	row := guard.Row("orders", "no", key)
	request := once.Request{Operation: "place", Scope: once.Anyone, ID: key}
	for n := range 2 {
		got, err := guard.OnceSQL(t.Context(), b.Guard, request, place, guard.Also(key, row))
		if err != nil || got.Value != "placed" || got.Replayed != (n == 1) {
			t.Errorf("answer %d is %+v, %v", n, got, err)
		}
	}
	for _, f := range b.Doctor(t.Context(), row, guard.Row("orders", "colour", 1)) {
		if named := strings.Contains(f.Subject, "Row of table orders"); named != (f.Check == "db-model") {
			t.Errorf("finding %+v", f)
		}
	}
	cfg.DB = new(gorm.DB)
	if _, err := belay.Open(t.Context(), cfg); err == nil {
		t.Error("DB and SQL together were taken")
	}
}

// TestOpen: an operation whose lock is lost is reported to RabbitMQ, also if the
// program ends meanwhile.
func TestOpen(t *testing.T) {
	cfg, events := onStack(t)
	b := open(t, cfg)
	key := teststack.Key(t, "order:1")
	closed := make(chan error, 1)
	err := b.Guard.Do(t.Context(), key, func(ctx context.Context, tx *gorm.DB) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		go func() {
			defer cancel()
			closed <- b.Close(ctx)
		}()
		testwait.Until(t, "the guard closes", func() bool {
			return errors.Is(b.Guard.Apply(context.Background(), key+"b", guard.Insert(&Order{No: "2"})), guard.ErrClosed)
		})
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cfg.RedisOptions.Addrs})
		defer client.Close()
		if n, err := client.Del(ctx, key).Result(); n != 1 || err != nil {
			t.Errorf("DEL: %d, %v", n, err)
		}
		return guard.Insert(&Order{No: "1"}).Run(ctx, tx)
	})
	if err != nil && !errors.Is(err, guard.ErrLost) {
		t.Errorf("error is %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	for late := time.After(limit); ; {
		select {
		case d := <-events: // a heartbeat comes, too
			if strings.Contains(string(d.Body), key) {
				return
			}
		case <-late:
			t.Fatal("no event")
		}
	}
}

// TestNamesOfSeveral: the metrics of several Belays of one process can be registered together if
// the Belays have names.
func TestNamesOfSeveral(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, monitor := range []string{"http://127.0.0.1:9", ""} {
		for n := range 2 {
			cfg := belay.Config{
				Name: fmt.Sprint(n, monitor), Service: "shop", DB: testdb.OpenSQLite(t, t.TempDir()+"/shop.db"),
				Redis: "redis://127.0.0.1:9", Once: &once.PurgerConfig{}, Logger: slog.New(slog.DiscardHandler),
			}
			if monitor == "" {
				cfg.AMQP = "amqp://127.0.0.1:9"
			} else {
				cfg.Monitor, cfg.MonitorToken = monitor, "sesame-sesame-sesame"
			}
			for _, c := range open(t, cfg).Collectors() {
				if err := registry.Register(c); err != nil {
					t.Errorf("%T: %v", c, err)
				}
			}
		}
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

// TestCollectors: the metrics of all parts can be registered together.
func TestCollectors(t *testing.T) {
	cfg, _ := onStack(t)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(open(t, cfg).Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	prefixes := map[string]bool{}
	for _, f := range families {
		prefixes[strings.Join(strings.SplitN(f.GetName(), "_", 3)[:2], "_")] = true
	}
	for _, want := range []string{"belay_guard", "belay_lock", "belay_redis", "belay_outbox", "belay_rabbitmq"} {
		if !prefixes[want] {
			t.Errorf("no metrics of %s: %v", want, prefixes)
		}
	}
}

// TestOpenWithParts: an engine and a publisher of the program's own stay open.
func TestOpenWithParts(t *testing.T) {
	var published []notify.Event
	publisher := notify.PublisherFunc(func(_ context.Context, ev notify.Event) error {
		published = append(published, ev)
		return nil
	})
	engine := memlock.New()
	cfg := belay.Config{
		Service: "shop", DB: testdb.OpenSQLite(t, t.TempDir()+"/shop.db"), Engine: engine, Publisher: publisher,
		Logger: slog.New(slog.DiscardHandler), Guard: guard.Config{Instance: "a"},
	}
	b := open(t, cfg)
	err := b.Guard.Do(t.Context(), "k", func(ctx context.Context, _ *gorm.DB) error {
		holder, err := engine.Inspect(ctx, "k")
		return errors.Join(err, engine.Release(ctx, lockengine.Request{Key: "k", Owner: holder.Owner})) // lost
	})
	if err != nil || len(published) != 1 || published[0].Service != "shop" || published[0].Instance != "a" {
		t.Errorf("error %v, events %+v", err, published)
	}
	if b.Redis != nil || b.Outbox != nil || b.Relay != nil || b.Webhook != nil {
		t.Errorf("parts that nobody asked for: %+v", b)
	}
	wantClosed(t, b)
	open(t, cfg) // on the same parts
}

func TestOpenRefuses(t *testing.T) {
	db := testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	const cluster = "redis+cluster://127.0.0.1:1"
	for name, tt := range map[string]struct {
		cfg  belay.Config
		want string
	}{
		"no service":         {belay.Config{DB: db, Redis: cluster}, "Service"},
		"no database":        {belay.Config{Service: "shop", Redis: cluster}, "DB"},
		"no locks":           {belay.Config{Service: "shop", DB: db}, "one of Redis, RedisOptions and Engine"},
		"two places":         {belay.Config{Service: "shop", DB: db, Redis: cluster, Engine: memlock.New()}, "one of Redis, RedisOptions and Engine"},
		"two ways of events": {belay.Config{Service: "shop", DB: db, Redis: cluster, AMQP: "amqp://127.0.0.1", Publisher: notify.Log(nil)}, "more than one of AMQP, Monitor and Publisher"},
		"broker and monitor": {belay.Config{Service: "shop", DB: db, Redis: cluster, AMQP: "amqp://127.0.0.1", Monitor: "http://127.0.0.1:1", MonitorToken: "secret"}, "more than one of AMQP, Monitor and Publisher"},
		"no token":           {belay.Config{Service: "shop", DB: db, Redis: cluster, Monitor: "http://127.0.0.1:1"}, "MonitorToken"},
		"no monitor":         {belay.Config{Service: "shop", DB: db, Redis: cluster, MonitorToken: "a-secret-that-is-long"}, "without Monitor"},
		"a wrong monitor":    {belay.Config{Service: "shop", DB: db, Redis: cluster, Monitor: "http://user:secret@h", MonitorToken: "a-secret-that-is-long"}, "Token"},
		"two Redis":          {belay.Config{Service: "shop", DB: db, Redis: cluster, RedisOptions: &redis.UniversalOptions{}}, "one of Redis, RedisOptions and Engine"},
		"no Redis":           {belay.Config{Service: "shop", DB: db, Redis: "http://user:secret@h"}, "redis://"},
		"no address":         {belay.Config{Service: "shop", DB: db, RedisOptions: &redis.UniversalOptions{}}, "Addrs"},
		"a wrong URL":        {belay.Config{Service: "shop", DB: db, Redis: cluster, AMQP: "http://user:secret@h"}, "amqp"},
		"a wrong policy":     {belay.Config{Service: "shop", DB: db, Redis: cluster, AMQP: "amqp://127.0.0.1:1", Guard: guard.Config{OnUnavailable: 7}}, "OnUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := belay.Open(t.Context(), tt.cfg) // what it has opened is closed: goleak
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error is %v, want one about %s", err, tt.want)
			}
		})
	}
}

// TestOpenWithMonitor: a lock failure is posted to guard-monitor, without a broker.
func TestOpenWithMonitor(t *testing.T) {
	const token = "0123456789abcdef"
	taken := make(chan string, 100)
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ev struct{ ID, Subject string }
		if err := json.NewDecoder(r.Body).Decode(&ev); err != nil || r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("a request with %v: %v", r.Header, err)
		}
		taken <- ev.Subject // empty for a heartbeat
		_ = json.NewEncoder(w).Encode(map[string]string{"taken": ev.ID})
	}))
	defer monitor.Close()
	engine := memlock.New()
	b := open(t, belay.Config{
		Service: "shop", DB: testdb.OpenSQLite(t, t.TempDir()+"/shop.db"), Engine: engine, Monitor: monitor.URL, MonitorToken: token,
	})
	err := b.Guard.Do(t.Context(), "k", func(ctx context.Context, _ *gorm.DB) error {
		holder, err := engine.Inspect(ctx, "k")
		return errors.Join(err, engine.Release(ctx, lockengine.Request{Key: "k", Owner: holder.Owner})) // lost
	})
	testdb.WantNil(t, err)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b.Collectors()...)
	if families, err := registry.Gather(); err != nil || !strings.Contains(fmt.Sprint(families), "belay_webhook") {
		t.Errorf("the metrics lack those of the webhook: %v", err)
	}
	wantClosed(t, b)
	for late := time.After(limit); ; {
		select {
		case subject := <-taken:
			if subject == "k" {
				return
			}
		case <-late:
			t.Fatal("no event")
		}
	}
}

// TestRun runs what the README shows. To serve, guard-monitor need not be there.
func TestRun(t *testing.T) {
	cfg, _ := onStack(t)
	if err := run(t.Context(), cfg.DB, "redis+cluster://"+strings.Join(cfg.RedisOptions.Addrs, ","), "http://127.0.0.1:1", "a-token-of-this-test"); err != nil {
		t.Error(err)
	}
}

// TestRequests: Open makes the tables of package once if it is asked to, and purges them.
func TestRequests(t *testing.T) {
	db := testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	b := open(t, belay.Config{Service: "shop", DB: db, Engine: memlock.New(), Once: new(once.PurgerConfig)})
	testdb.WantNil(t, once.Check(t.Context(), db))
	r := once.Request{Operation: "greet", Scope: once.Anyone, ID: "1"}
	greet := func(context.Context, *gorm.DB) (string, error) { return "hello", nil }
	for range 2 {
		got, err := guard.Once(t.Context(), b.Guard, r, greet)
		testdb.WantNil(t, err)
		if got.Value != "hello" {
			t.Errorf("the answer is %q", got.Value)
		}
	}
	registry := prometheus.NewPedanticRegistry()
	for _, c := range b.Collectors() {
		registry.MustRegister(c)
	}
	_, err := belay.Open(t.Context(), belay.Config{Service: "shop", DB: db, Engine: memlock.New(), Once: &once.PurgerConfig{Keep: 1}})
	if err == nil {
		t.Error("no error for a Keep of 1 ns")
	}
}

// TestMessages: Open makes the tables of messages if it has routes, sends what operations have sent,
// and Doctor finds that a table is gone.
func TestMessages(t *testing.T) {
	db := testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	got := make(chan relay.Message, 1)
	b := open(t, belay.Config{Service: "shop", DB: db, Engine: memlock.New(), Messages: []relay.Route{{
		Topic: "mail", Until: time.Hour,
		Handle: func(_ context.Context, m relay.Message) error {
			got <- m
			return nil
		},
	}}})
	testdb.WantNil(t, relay.Check(t.Context(), db))
	testdb.WantNil(t, b.Guard.Apply(t.Context(), "order:1", guard.Send(guard.Message{Topic: "mail", Body: []byte("hello")})))
	select {
	case m := <-got:
		if m.Key != "order:1" || string(m.Body) != "hello" {
			t.Errorf("got %+v", m)
		}
	case <-time.After(time.Minute):
		t.Fatal("no message")
	}
	registry := prometheus.NewPedanticRegistry()
	for _, c := range b.Collectors() {
		registry.MustRegister(c)
	}
	testdb.WantNil(t, db.Exec("ALTER TABLE belay_message RENAME TO before").Error)
	wantChecks(t, b.Doctor(t.Context()), "db-messages", "db-model") // unchecked
	_, err := belay.Open(t.Context(), belay.Config{Service: "shop", DB: db, Engine: memlock.New(), Messages: []relay.Route{{Topic: "mail"}}})
	if err == nil {
		t.Error("no error for a route that leads nowhere")
	}
}
