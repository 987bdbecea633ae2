package pgxguard_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/lock"
)

// begins returns how many of the trips begin a transaction, by one statement of several, and alone.
func (c *trips) begins() (together, alone int) {
	for _, trip := range c.all {
		if trip == "BEGIN" {
			alone++
		} else if strings.HasPrefix(trip, "BEGIN") {
			together++
		}
	}
	return together, alone
}

// TestPluginBeforeClaim: a plugin sends statements before each INSERT, as one does that sets the user for
// row-level security. Nothing is sent together then, and the claim has its limit, which is no more behind it.
func TestPluginBeforeClaim(t *testing.T) {
	for name, query := range map[string]string{
		"one statement":      "SELECT set_config('app.a', 'x', true)",
		"several statements": "SET LOCAL app.a = '1'; SET LOCAL app.b = '2'",
	} {
		t.Run(name, func(t *testing.T) {
			s, seen := newTracedShop(t)
			wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:before", func(db *gorm.DB) {
				_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec(query).Error)
			}))
			wantNil(t, s.apply(bg, "1"))
			seen.all = nil
			var limit string
			wantNil(t, s.Do(bg, "order:2", func(_ context.Context, tx *gorm.DB) error {
				return tx.Raw("SELECT current_setting('lock_timeout')").Scan(&limit).Error
			}, guard.For(selling("2"))))
			if together, alone := seen.begins(); together != 0 || alone != 1 || limit != "0" {
				t.Errorf("begun by %q, and the limit is %s", seen.all, limit)
			}
			s.claimElsewhere()
			ctx, cancel := context.WithTimeout(bg, 20*time.Second)
			defer cancel()
			wantIs(t, s.apply(ctx, "1"), guard.ErrBusy)
		})
	}
}

// shards is a plugin's connection, which rewrites the name of a table, as gorm.io/sharding does.
type shards struct{ gorm.ConnPool }

func shard(query string) string { return strings.ReplaceAll(query, `"orders"`, `"orders_1"`) }

func (c shards) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return c.ConnPool.ExecContext(ctx, shard(query), args...)
}

func (c shards) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.ConnPool.QueryContext(ctx, shard(query), args...)
}

func (c shards) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return c.ConnPool.QueryRowContext(ctx, shard(query), args...)
}

// TestPluginRewrites: an order that is there, in the table that a plugin chooses, is a repeat.
func TestPluginRewrites(t *testing.T) {
	s := newShop(t)
	_, err := s.pool.Exec(bg, "CREATE TABLE orders_1 (LIKE orders INCLUDING ALL)")
	wantNil(t, err)
	wrap := func(db *gorm.DB) { db.Statement.ConnPool = shards{db.Statement.ConnPool} }
	wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:shard", wrap))
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:shard", wrap))
	sell := func() error { return s.Apply(bg, "order:1", guard.Insert(&order{No: "1", Amount: 1})) }
	for range 2 { // the first one reads the catalogue
		wantNil(t, sell())
		wantIs(t, sell(), guard.ErrDuplicate)
		_, err = s.pool.Exec(bg, "DELETE FROM orders_1")
		wantNil(t, err)
	}
	s.wantEvents(0)
}

// TestRefusedPrelude: statements that the server refuses together are sent one by one for a while. That
// is logged once.
func TestRefusedPrelude(t *testing.T) {
	s, seen := newTracedShop(t)
	var logged bytes.Buffer
	s.configure(lock.Config{}, guard.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	wantNil(t, s.apply(bg, "warm"))
	seen.all = nil
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:ends", func(db *gorm.DB) {
		db.Statement.Clauses["FOR"] = clause.Clause{Expression: clause.Expr{SQL: ";"}}
	}))
	for n := range 3 {
		wantNil(t, s.apply(bg, fmt.Sprint(n)))
	}
	if together, alone := seen.begins(); together != 1 || alone != 3 || strings.Count(logged.String(), "one by one") != 1 {
		t.Errorf("begun by %q, and logged: %s", seen.all, logged.String())
	}
	s.wantEvents(0)
}

// TestPluginAroundQuery: a plugin sends statements around each query, by GORM or on its connection. A look
// is sent between them, or it would not see the row that another has inserted.
func TestPluginAroundQuery(t *testing.T) {
	quiet := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{NewDB: true, Logger: logger.Discard}) }
	for name, send := range map[string]func(db *gorm.DB, path string) error{
		"GORM": func(db *gorm.DB, path string) error { return quiet(db).Exec("SET LOCAL search_path = " + path).Error },
		"its connection": func(db *gorm.DB, path string) error {
			_, err := db.Statement.ConnPool.ExecContext(db.Statement.Context, "SET LOCAL search_path = "+path)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			_, err := s.pool.Exec(bg, "CREATE SCHEMA tenant; CREATE TABLE tenant.orders (LIKE orders INCLUDING ALL)")
			wantNil(t, err)
			set := func(path string) func(*gorm.DB) {
				return func(db *gorm.DB) { _ = db.AddError(send(db, path)) }
			}
			wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:set", set("tenant, public")))
			wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:set", set("tenant, public")))
			wantNil(t, s.db.Callback().Query().After("gorm:query").Register("test:reset", set("public")))
			sell := func(opts ...guard.Option) error {
				return s.Apply(bg, "order:1", guard.Insert(&order{No: "1", Amount: 1}), opts...)
			}
			wantNil(t, sell())
			for range 2 { // the first one reads the catalogue
				wantIs(t, sell(), guard.ErrDuplicate)
				wantIs(t, sell(guard.For(selling("1"))), guard.ErrExists)
			}
			s.wantEvents(0)
		})
	}
}

// TestPluginBeforeFirst: a plugin sends a statement before the first query of a transaction, on which all
// others depend.
func TestPluginBeforeFirst(t *testing.T) {
	s := newShop(t)
	_, err := s.pool.Exec(bg, "CREATE SCHEMA tenant; CREATE TABLE tenant.orders (LIKE orders INCLUDING ALL)")
	wantNil(t, err)
	var set sync.Map
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:set", func(db *gorm.DB) {
		if _, done := set.LoadOrStore(db.Statement.ConnPool, true); !done {
			_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL search_path = tenant, public").Error)
		}
	}))
	const sold = 3 // the first one reads the catalogue
	for n := range sold {
		wantNil(t, s.apply(bg, fmt.Sprint(n)))
	}
	var there int
	wantNil(t, s.pool.QueryRow(bg, "SELECT count(*) FROM tenant.orders").Scan(&there))
	if there != sold || s.count() != 0 {
		t.Errorf("%d orders of the tenant and %d others, want %d and none", there, s.count(), sold)
	}
	s.wantEvents(0)
}

// TestPluginChoosesBeforeClaim: a plugin chooses a schema before each INSERT. The look at an order comes
// behind the claim then.
func TestPluginChoosesBeforeClaim(t *testing.T) {
	s := newShop(t)
	_, err := s.pool.Exec(bg, "CREATE SCHEMA tenant; CREATE TABLE tenant.orders (LIKE orders INCLUDING ALL)")
	wantNil(t, err)
	wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:set", func(db *gorm.DB) {
		_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL search_path = tenant, public").Error)
	}))
	sell := func(id string) error {
		return s.Apply(bg, "order:1", guard.Insert(&order{No: "1", Amount: 1}), guard.For(selling(id)))
	}
	wantNil(t, sell("1"))
	for _, id := range []string{"2", "3"} { // the first one reads the catalogue
		wantIs(t, sell(id), guard.ErrExists)
	}
	s.wantEvents(0)
}

// TestLookIsRefused: with a plugin that sends a statement before each look, one may be refused. The error is
// that of the look, and the claim is as it would be without a prelude.
func TestLookIsRefused(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:set", func(db *gorm.DB) {
		_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SELECT set_config('app.a', 'x', true)").Error)
	}))
	wantNil(t, s.apply(bg, "1"))
	for name, err := range map[string]error{
		"of an order":    s.Apply(bg, "order:2", guard.Insert(&order{No: "\x00"})),
		"behind a claim": s.apply(bg, "\x00"),
	} {
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "22021" {
			t.Errorf("%s: %v, want the error for a NUL in a text", name, err)
		}
	}
	wantIs(t, s.Apply(bg, "order:1", guard.Insert(&order{No: "\x00"}), guard.For(selling("1"))), guard.ErrDuplicate)
	s.wantEvents(0)
}

// TestPluginOfOneModel: a plugin chooses the schema of the orders, in which there are claims, too. A claim
// comes before that, as in a process without pgxguard, or a request would have two.
func TestPluginOfOneModel(t *testing.T) {
	s := newShop(t)
	_, err := s.pool.Exec(bg, `CREATE SCHEMA tenant; CREATE TABLE tenant.orders (LIKE orders INCLUDING ALL);
		CREATE TABLE tenant.belay_once (LIKE belay_once INCLUDING ALL)`)
	wantNil(t, err)
	choose := func(db *gorm.DB) {
		if db.Statement.Table == "orders" {
			_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL search_path = tenant, public").Error)
		}
	}
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:choose", choose))
	wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:choose", choose))
	const sold = 3 // the first one reads the catalogue
	for n := range sold {
		wantNil(t, s.apply(bg, fmt.Sprint(n)))
	}
	var orders, claims int
	wantNil(t, s.pool.QueryRow(bg, "SELECT (SELECT count(*) FROM tenant.orders), (SELECT count(*) FROM tenant.belay_once)").Scan(&orders, &claims))
	if orders != sold || claims != 0 {
		t.Errorf("the tenant has %d orders and %d claims, want %d and none", orders, claims, sold)
	}
	s.wantEvents(0)
}

// TestPluginSpeaksIfSent: a plugin chooses the schema of a transaction before its first query, but not if GORM only
// builds one. A claim comes behind that, as in a process without pgxguard, or a request would have two.
func TestPluginSpeaksIfSent(t *testing.T) {
	s := newShop(t)
	_, err := s.pool.Exec(bg, `CREATE SCHEMA tenant; CREATE TABLE tenant.orders (LIKE orders INCLUDING ALL);
		CREATE TABLE tenant.belay_once (LIKE belay_once INCLUDING ALL)`)
	wantNil(t, err)
	var chosen sync.Map
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:choose", func(db *gorm.DB) {
		if db.DryRun {
			return
		}
		if _, done := chosen.LoadOrStore(db.Statement.ConnPool, true); !done {
			_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL search_path = tenant, public").Error)
		}
	}))
	const sold = 3 // the first one reads the catalogue
	for n := range sold {
		wantNil(t, s.apply(bg, fmt.Sprint(n)))
	}
	var claims int
	wantNil(t, s.pool.QueryRow(bg, "SELECT count(*) FROM tenant.belay_once").Scan(&claims))
	if claims != sold || s.claims() != 0 {
		t.Errorf("%d claims of the tenant and %d others, want %d and none", claims, s.claims(), sold)
	}
	s.wantEvents(0)
}

// TestPluginSpeaksUnanswered: the error is that of a database that does not answer, though a plugin sends a statement.
func TestPluginSpeaksUnanswered(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "warm"))
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:before", func(db *gorm.DB) {
		if db.Statement.Table == "belay_once" {
			_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL app.a = 'x'").Error)
		}
	}))
	s.configure(lock.Config{}, guard.Config{EndTimeout: time.Second})
	migration, err := s.connect().Begin(bg)
	wantNil(t, err)
	_, err = migration.Exec(bg, "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
	wantNil(t, err)
	wantIs(t, s.apply(bg, "1"), pinned.ErrNoAnswer)
	wantNil(t, migration.Rollback(bg))
	s.wantEvents(0)
}

// TestPluginSpeaksBeforeABusyClaim: a claim waits for another transaction no longer than without the plugin.
func TestPluginSpeaksBeforeABusyClaim(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "warm"))
	wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:before", func(db *gorm.DB) {
		_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL app.a = 'x'").Error)
	}))
	rival, err := s.connect().Begin(bg)
	wantNil(t, err)
	_, err = rival.Exec(bg, "LOCK TABLE belay_once IN EXCLUSIVE MODE")
	wantNil(t, err)
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	wantIs(t, s.apply(ctx, "1"), guard.ErrBusy)
	wantNil(t, rival.Rollback(bg))
	wantNil(t, s.apply(bg, "1"))
	s.wantEvents(0)
}

// TestPluginSpeaksAfterContext: the error is that of a context which ends behind a statement of a plugin.
func TestPluginSpeaksAfterContext(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "warm"))
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:before", func(db *gorm.DB) {
		_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL app.a = 'x'").Error)
		cancel()
	}))
	wantIs(t, s.apply(ctx, "1"), context.Canceled)
	s.wantEvents(0)
}

// TestClaimIsNotSent: a claim that is not sent, as the lock was lost, is no statement of a plugin. The next
// operation begins in one trip.
func TestClaimIsNotSent(t *testing.T) {
	s, seen := newTracedShop(t)
	s.configure(lock.Config{TTL: time.Second}, guard.Config{})
	wantNil(t, s.apply(bg, "warm"))
	wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:lost", func(db *gorm.DB) {
		if s.Forget("order:1") {
			<-db.Statement.Context.Done()
		}
	}))
	wantIs(t, s.apply(bg, "1"), lock.ErrLost)
	seen.all = nil
	wantNil(t, s.apply(bg, "2"))
	if together, alone := seen.begins(); together != 1 || alone != 0 {
		t.Errorf("begun by %q", seen.all)
	}
}

// TestPluginWithholdsClaim: a plugin keeps GORM from sending a claim. Its limit does not hold for the operation.
func TestPluginWithholdsClaim(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "warm"))
	wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:withhold", func(db *gorm.DB) {
		db.DryRun = db.Statement.Table == "belay_once"
	}))
	var limit string
	wantNil(t, s.Do(bg, "order:1", func(_ context.Context, tx *gorm.DB) error {
		return tx.Raw("SELECT current_setting('lock_timeout')").Scan(&limit).Error
	}, guard.For(selling("1"))))
	if limit != "0" {
		t.Errorf("the operation waits for a row for %s, want no limit", limit)
	}
	s.wantEvents(0)
}

// TestPluginIsRefused: the error is that of the statement of a plugin that the server refuses.
func TestPluginIsRefused(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "warm"))
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:refused", func(db *gorm.DB) {
		_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL ROLE nobody_has_it").Error)
	}))
	nothing := func(context.Context, *gorm.DB) error { return nil }
	for name, serve := range map[string]func() error{
		"Apply with For": func() error { return s.apply(bg, "1") },
		"Do with For":    func() error { return s.Do(bg, "order:2", nothing, guard.For(selling("2"))) },
		"Apply":          func() error { return s.Apply(bg, "order:3", guard.Insert(&order{No: "3"})) },
	} {
		err := serve()
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "22023" {
			t.Errorf("%s: %v, want the error for a role that is not there", name, err)
		}
	}
	s.wantEvents(0)
}

// TestPluginSpeaksOnce: a plugin that sends a statement before each one of GORM's sends it once.
func TestPluginSpeaksOnce(t *testing.T) {
	s, seen := newTracedShop(t)
	sent := 0
	before := func(db *gorm.DB) {
		sent++
		_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec("SET LOCAL app.a = 'x'").Error)
	}
	wantNil(t, s.db.Callback().Query().Before("gorm:query").Register("test:set", before))
	wantNil(t, s.db.Callback().Create().Before("gorm:create").Register("test:set", before))
	wantNil(t, s.apply(bg, "1"))
	seen.all, sent = nil, 0
	wantNil(t, s.apply(bg, "2"))
	if sent != 4 { // two looks, a claim, an order
		t.Errorf("sent %d times, want 4: %q", sent, seen.all)
	}
}
