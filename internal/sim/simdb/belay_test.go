package simdb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

type Order struct {
	ID     int64
	No     string
	Amount int
}

type Stock struct {
	ID      int64
	Left    int
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// gateFunc is a gate.
type gateFunc func(context.Context, simdb.Call) simdb.Fate

func (f gateFunc) Pass(ctx context.Context, c simdb.Call) simdb.Fate { return f(ctx, c) }

var open = gateFunc(func(context.Context, simdb.Call) simdb.Fate { return simdb.Execute })

// tables are those of the models.
var tables = map[bool][]string{
	false: {
		"CREATE TABLE orders (id BIGINT NOT NULL AUTO_INCREMENT, no VARCHAR(64) NOT NULL, amount BIGINT, PRIMARY KEY (id), UNIQUE KEY idx_orders_no (no))",
		"CREATE TABLE stocks (id BIGINT NOT NULL AUTO_INCREMENT, `left` BIGINT, version BIGINT NOT NULL DEFAULT 1, stamp BIGINT, PRIMARY KEY (id))",
	},
	true: {
		"CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, no VARCHAR(64) NOT NULL, amount BIGINT)",
		"CREATE UNIQUE INDEX idx_orders_no ON orders (no)",
		`CREATE TABLE stocks (id BIGSERIAL PRIMARY KEY, "left" BIGINT, version BIGINT NOT NULL DEFAULT 1, stamp BIGINT)`,
	},
}

// each runs f in a bubble, on a database of each personality.
func each(t *testing.T, k simdb.Knobs, f func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB)) {
	for name, p := range map[string]simdb.Personality{"mariadb": simdb.MariaDB, "snapshot": simdb.MariaDBSnapshot, "postgres": simdb.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k.Unknown = func(err error) { t.Error(err) }
				sdb := simdb.New(p, k)
				sdb.Exec(tables[p == simdb.PostgreSQL]...)
				f(t, sdb, func(g simdb.Gate) *gorm.DB {
					return gormOn(t, p, sqlOpen(t, sdb.Connector("p", g)))
				})
			})
		})
	}
}

func sqlOpen(t *testing.T, c driver.Connector) *sql.DB {
	pool := sql.OpenDB(c)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

func gormOn(t *testing.T, p simdb.Personality, pool *sql.DB) *gorm.DB {
	t.Helper()
	d := mysql.New(mysql.Config{Conn: pool})
	if p == simdb.PostgreSQL {
		d = postgres.New(postgres.Config{Conn: pool})
	}
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestGuard(t *testing.T) {
	each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		db := connect(open)
		locker, err := lock.New(memlock.New(), lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(t.Context())
		g, err := guard.New(db, locker, guard.Config{Service: "s", Publisher: notify.PublisherFunc(func(context.Context, notify.Event) error { return nil })})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close(t.Context())
		if err := g.Apply(t.Context(), "order:a", guard.Insert(&Order{No: "a", Amount: 1})); err != nil {
			t.Error(err)
		}
		if err := g.Apply(t.Context(), "order:a", guard.Insert(&Order{No: "a", Amount: 2})); !errors.Is(err, guard.ErrDuplicate) {
			t.Errorf("error is %v", err)
		}
		sdb.Exec("INSERT INTO stocks (id, `left`, version) VALUES (1, 5, 1)")
		for range 3 {
			if err := g.Apply(t.Context(), "stock:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left--; return nil })); err != nil {
				t.Error(err)
			}
		}
		if rows := sdb.Rows("stocks"); len(rows) != 1 || rows[0]["left"] != int64(2) || rows[0]["version"] != int64(4) {
			t.Errorf("rows are %v", rows)
		}
	})
}

// TestResolve: the answer of a COMMIT is lost.
func TestResolve(t *testing.T) {
	for fate, committed := range map[simdb.Fate]bool{simdb.CutBefore: false, simdb.CutAfter: true} {
		each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
			cut := false
			db := connect(gateFunc(func(_ context.Context, c simdb.Call) simdb.Fate {
				if c.Text == "COMMIT" && !cut {
					cut = true
					return fate
				}
				return simdb.Execute
			}))
			locker, err := lock.New(memlock.New(), lock.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer locker.Close(t.Context())
			g, err := guard.New(db, locker, guard.Config{Service: "s"})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close(t.Context())
			err = g.Apply(t.Context(), "order:a", guard.Insert(&Order{No: "a", Amount: 1}))
			if (err == nil) != committed || len(sdb.Rows("orders")) != 0 != committed {
				t.Errorf("error is %v, rows are %v", err, sdb.Rows("orders"))
			}
		})
	}
}

func TestOutbox(t *testing.T) {
	each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		db := connect(open)
		if err := outbox.Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		n := 0
		o, err := outbox.New(db, outbox.Config{Relay: notify.PublisherFunc(func(context.Context, notify.Event) error {
			if n++; n == 2 {
				return errors.New("not now")
			}
			return nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			ev := notify.Event{ID: fmt.Sprint(i), Key: "k", Verdict: notify.VerdictLost, Outcome: notify.OutcomeCommitted, Count: 1, Service: "s", CaughtAt: time.Now()}
			if err := o.Publish(t.Context(), ev); err != nil {
				t.Error(err)
			}
		}
		<-time.After(time.Minute)
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if rows := sdb.Rows("belay_outbox"); len(rows) != 0 || n < 4 {
			t.Errorf("%d published, rows are %v", n, rows)
		}
	})
}
