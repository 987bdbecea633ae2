package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

func TestStoreOnly(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{})
		publish(t, o, 1, 2, 1)

		var bodies []string
		if err := db.Raw("SELECT body FROM belay_outbox ORDER BY id").Scan(&bodies).Error; err != nil {
			t.Fatal(err)
		}
		if len(bodies) != 2 {
			t.Fatalf("%d rows, want 2: %q", len(bodies), bodies)
		}
		for i, body := range bodies {
			var got notify.Event
			if err := got.UnmarshalJSON([]byte(body)); err != nil {
				t.Fatal(err)
			}
			if want := event(i + 1); !reflect.DeepEqual(got, want) {
				t.Errorf("stored %+v, want %+v", got, want)
			}
			if strings.ContainsFunc(body, func(r rune) bool { return r > '~' }) {
				t.Errorf("stored body is not plain ASCII: %s", body)
			}
		}
		metrics(t, o, `
			belay_outbox_backlog{name="outbox"} 2
			belay_outbox_stored_total{name="outbox"} 3
			belay_outbox_published_total{name="outbox"} 0`)
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCallersContextDoesNotMatter(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := o.Publish(ctx, event(1)); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, db); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

func TestGORMSettingsDoNotMatter(t *testing.T) {
	cfg := func() *gorm.Config {
		return &gorm.Config{
			PrepareStmt:            true,
			TranslateError:         true,
			SkipDefaultTransaction: true,
			NamingStrategy:         schema.NamingStrategy{TablePrefix: "odd_", SingularTable: true},
		}
	}
	refuse := func(tx *gorm.DB) { _ = tx.AddError(errors.New("a plugin refuses")) }
	for name, db := range map[string]func(t *testing.T) *gorm.DB{
		"sqlite":  func(t *testing.T) *gorm.DB { return openSQLite(t, cfg()) },
		"mariadb": func(t *testing.T) *gorm.DB { return openMariaDB(t, cfg()) },
	} {
		t.Run(name, func(t *testing.T) {
			db := db(t)
			callback := db.Callback()
			for _, err := range []error{
				callback.Raw().Before("*").Register("test:raw", refuse),
				callback.Row().Before("*").Register("test:row", refuse),
				callback.Query().Before("*").Register("test:query", refuse),
				callback.Create().Before("*").Register("test:create", refuse),
				callback.Delete().Before("*").Register("test:delete", refuse),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			db.DryRun = true
			migrated(t, db)
			var relay recorder
			o := open(t, db.Where("1 = 0").Limit(0), outbox.Config{Relay: &relay})
			publish(t, o, 1, 2)
			if err := o.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !relay.tookAll(1, 2) {
				t.Errorf("relayed %v", relay.took(1, 2))
			}
		})
	}
}

func TestCharacterSetDoesNotMatter(t *testing.T) {
	for _, charset := range []string{"latin1", "utf8"} {
		t.Run(charset, func(t *testing.T) {
			dsn, err := mysql.ParseDSN(teststack.MySQL(t))
			if err != nil {
				t.Fatal("the DSN is none")
			}
			if err := dsn.Apply(mysql.Charset(charset, "")); err != nil {
				t.Fatal(err)
			}
			db := migrated(t, openMySQL(t, dsn.FormatDSN(), &gorm.Config{}))
			var relay recorder
			o := open(t, db, outbox.Config{Relay: &relay})
			publish(t, o, 1)
			if err := o.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !relay.tookAll(1) {
				t.Errorf("relayed %q", relay.keys)
			}
		})
	}
}

func TestWithoutTableEventsGoStraightToTheRelay(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		drop(t, db)
		var relay recorder
		o := open(t, db, outbox.Config{Relay: &relay})
		publish(t, o, 1)
		if got := relay.took(1); got[0] != 1 {
			t.Errorf("taken %d times, want once", got[0])
		}
		metrics(t, o, `
			belay_outbox_direct_total{name="outbox"} 1
			belay_outbox_lost_total{name="outbox"} 0
			belay_outbox_stored_total{name="outbox"} 0`)
	})
}

func drop(t *testing.T, db *gorm.DB) {
	t.Helper()
	if err := db.Exec("DROP TABLE belay_outbox").Error; err != nil {
		t.Fatal(err)
	}
}

// The table is locked by somebody else, so that the insert hangs until its
// share of the limit is over; what is left is enough to publish.
func TestHangingTableLeavesTimeToPublishDirectly(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		pool, err := db.DB()
		if err != nil {
			t.Fatal(err)
		}
		blocker, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer blocker.Close()
		lock, unlock := "LOCK TABLES belay_outbox WRITE", "UNLOCK TABLES"
		switch db.Name() {
		case "sqlite":
			lock, unlock = "BEGIN IMMEDIATE", "ROLLBACK"
		case "postgres":
			lock, unlock = "BEGIN; LOCK TABLE belay_outbox", "ROLLBACK"
		}
		if _, err := blocker.ExecContext(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		var relay recorder
		o := open(t, db, outbox.Config{Relay: &relay, WriteTimeout: 600 * time.Millisecond})
		publish(t, o, 1)
		if got := relay.took(1); got[0] != 1 {
			t.Errorf("taken %d times, want once", got[0])
		}
		if _, err := blocker.ExecContext(context.WithoutCancel(t.Context()), unlock); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEventThatWouldBeLostIsLoggedWhole(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		drop(t, db)
		for name, relay := range map[string]notify.Publisher{
			"no relay":     nil,
			"broken relay": notify.PublisherFunc(func(context.Context, notify.Event) error { return errDown }),
		} {
			t.Run(name, func(t *testing.T) {
				var log syncBuffer
				o := open(t, db, outbox.Config{Relay: relay, Logger: slog.New(slog.NewJSONHandler(&log, nil)), Name: "shop"})
				err := o.Publish(t.Context(), event(7))
				if err == nil || !strings.Contains(err.Error(), "belay_outbox") {
					t.Errorf("err = %v, want one that names the table", err)
				}
				if relay != nil && !errors.Is(err, errDown) {
					t.Errorf("err = %v, want %v as well", err, errDown)
				}
				for _, want := range []string{`"level":"ERROR"`, event(7).ID, "order:中国 🧗", `"verdict":"overlap"`} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log lacks %s: %s", want, log.String())
					}
				}
				metrics(t, o, `
					belay_outbox_direct_total{name="shop"} 0
					belay_outbox_lost_total{name="shop"} 1`)
			})
		}
	})
}

func TestInvalidEventIsRefusedAndLogged(t *testing.T) {
	db := migrated(t, openSQLite(t, &gorm.Config{}))
	var log syncBuffer
	var relay recorder
	relay.failWith(func(ev notify.Event) error { return ev.Validate() })
	o := open(t, db, outbox.Config{Relay: &relay, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	bad := event(1)
	bad.Count = 0
	if err := o.Publish(t.Context(), bad); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("err = %v, want ErrInvalidEvent", err)
	}
	if !strings.Contains(log.String(), bad.ID) {
		t.Errorf("the log lacks the event: %s", log.String())
	}
}

func TestNewRefuses(t *testing.T) {
	db := migrated(t, openSQLite(t, &gorm.Config{}))
	tx := db.Begin()
	defer tx.Rollback()
	for name, tc := range map[string]struct {
		db   *gorm.DB
		cfg  outbox.Config
		says string
	}{
		"nil db":        {db: nil, says: "db is missing"},
		"empty db":      {db: &gorm.DB{}, says: "db is missing"},
		"transaction":   {db: tx, says: "db is a transaction"},
		"other dialect": {db: &gorm.DB{Config: &gorm.Config{Dialector: oracle{}}}, says: `db is "oracle"`},
		"no pool":       {db: &gorm.DB{Config: &gorm.Config{Dialector: db.Dialector}, Statement: &gorm.Statement{}}, says: "no connection pool"},
		"write timeout": {db: db, cfg: outbox.Config{WriteTimeout: -1}, says: "WriteTimeout"},
		"relay timeout": {db: db, cfg: outbox.Config{RelayTimeout: -1}, says: "RelayTimeout"},
		"poll interval": {db: db, cfg: outbox.Config{PollInterval: -1}, says: "PollInterval"},
		"batch size":    {db: db, cfg: outbox.Config{BatchSize: -1}, says: "BatchSize"},
		"large batch":   {db: db, cfg: outbox.Config{BatchSize: 1001}, says: "BatchSize 1001"},
		"gather delay":  {db: db, cfg: outbox.Config{GatherDelay: -1}, says: "GatherDelay"},
		"short lease":   {db: db, cfg: outbox.Config{Lease: time.Second}, says: "Lease 1s"},
		"heartbeats":    {db: db, cfg: outbox.Config{HeartbeatInterval: -1}, says: "HeartbeatInterval"},
		"name":          {db: db, cfg: outbox.Config{Name: "\xff"}, says: `Name "\xff"`},
		"service":       {db: db, cfg: outbox.Config{Service: "\xff"}, says: `Service "\xff"`},
		"no service":    {db: db, cfg: outbox.Config{Instance: "a"}, says: "Instance without a Service"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := outbox.New(tc.db, tc.cfg)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want one that says %q", err, tc.says)
			}
			if tc.cfg == (outbox.Config{}) {
				if err := outbox.Migrate(t.Context(), tc.db); err == nil {
					t.Error("Migrate took it")
				}
			}
		})
	}
}

type oracle struct{ gorm.Dialector }

func (oracle) Name() string { return "oracle" }

func TestPing(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{})
		if err := o.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		migrated(t, db) // a second time changes nothing
		drop(t, db)
		if err := o.Ping(t.Context()); err == nil {
			t.Error("no error without the table")
		}
	})
}

func TestAgeOfTheOldestEvent(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{})
		publish(t, o, 1, 2)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(o)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "belay_outbox_oldest_event_timestamp_seconds" {
				at := family.GetMetric()[0].GetGauge().GetValue()
				if age := time.Since(time.UnixMilli(int64(at * 1000))); age < -time.Minute || age > time.Minute {
					t.Errorf("the event is %v old, want about none", age)
				}
				return
			}
		}
		t.Error("no such metric")
	})
}

func TestMetricsOfSeveralOutboxes(t *testing.T) {
	db := migrated(t, openSQLite(t, &gorm.Config{}))
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"a", "b"} {
		registry.MustRegister(open(t, db, outbox.Config{Name: name}))
	}
	if n := gather(t, registry)["belay_outbox_backlog"]; n != 2 {
		t.Errorf("%d outboxes tell their backlog, want 2", n)
	}
	if n := gather(t, registry)["belay_outbox_oldest_event_timestamp_seconds"]; n != 0 {
		t.Errorf("%d outboxes tell of an oldest event, but there is none", n)
	}
	drop(t, db)
	found := gather(t, registry)
	if found["belay_outbox_backlog"] != 0 || found["belay_outbox_lost_total"] != 2 {
		t.Errorf("without the table: %v; want the counters alone", found)
	}
}

// gather counts the metrics of each name.
func gather(t *testing.T, registry *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, family := range families {
		counts[family.GetName()] = len(family.GetMetric())
	}
	return counts
}

// metrics expects each line of want among the metrics of o.
func metrics(t *testing.T, o *outbox.Outbox, want string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			got[fmt.Sprintf("%s{name=%q} %v", family.GetName(), m.GetLabel()[0].GetValue(), value)] = true
		}
	}
	for line := range strings.Lines(strings.TrimSpace(want)) {
		if line = strings.TrimSpace(line); !got[line] {
			t.Errorf("no metric %s among %v", line, got)
		}
	}
}

// A syncBuffer is a buffer for a logger that several goroutines use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
