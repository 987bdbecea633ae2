package outbox_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/testdb"
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
	refuse := func(tx *gorm.DB) { _ = tx.AddError(errors.New("a plugin refuses")) }
	testdb.Each(t, func(t *testing.T, connect func(opts ...gorm.Option) *gorm.DB) {
		db := connect(&gorm.Config{
			PrepareStmt:            true,
			TranslateError:         true,
			SkipDefaultTransaction: true,
			NamingStrategy:         schema.NamingStrategy{TablePrefix: "odd_", SingularTable: true},
		})
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
			db := migrated(t, testdb.OpenMySQL(t, dsn.FormatDSN()))
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

func TestNewRefuses(t *testing.T) {
	db := openSQLite(t)
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
		"relay timeout": {db: db, cfg: outbox.Config{RelayTimeout: -1}, says: "RelayTimeout"},
		"long timeout":  {db: db, cfg: outbox.Config{RelayTimeout: time.Hour}, says: "RelayTimeout 1h"},
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
			if reflect.ValueOf(tc.cfg).IsZero() {
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
