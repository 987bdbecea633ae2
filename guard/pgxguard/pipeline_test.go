package pgxguard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// trips traces the round trips of a connection. One of several statements has their first words.
type trips struct {
	tracer
	all   []string
	batch func() // is called before several statements are sent, unless it is nil
}

// TraceQueryStart implements pgx.QueryTracer.
func (c *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.all = append(c.all, words(d.SQL))
	return ctx
}

// TraceBatchStart implements pgx.BatchTracer.
func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	var all []string
	for _, q := range d.Batch.QueuedQueries {
		all = append(all, words(q.SQL))
	}
	c.all = append(c.all, strings.Join(all, ", "))
	if c.batch != nil {
		c.batch()
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// words returns what a statement does, and the table that it names.
func words(sql string) string {
	verb, rest, _ := strings.Cut(sql, " ")
	for _, table := range []string{"orders", "belay_once", "belay_answer", "set_config", "pg_current_xact"} {
		if strings.Contains(rest, table) {
			return strings.ToUpper(verb) + " " + table
		}
	}
	return strings.ToUpper(verb)
}

func selling(no string) once.Request {
	return once.Request{Operation: "sell", Scope: once.Anyone, ID: no}
}

// apply inserts an order for a request of its number.
func (s *shop) apply(ctx context.Context, no string, opts ...guard.Option) error {
	return s.Apply(ctx, "order:"+no, guard.Insert(&order{No: no, Amount: 1}), append(opts, guard.For(selling(no)))...)
}

// newTracedShop returns a shop, and the round trips of its only connection.
func newTracedShop(t *testing.T) (*shop, *trips) {
	t.Helper()
	config, err := pgxpool.ParseConfig(teststack.Postgres(t))
	wantNil(t, err)
	seen := new(trips)
	config.MaxConns, config.ConnConfig.Tracer = 1, seen
	return newShopOf(t, config), seen
}

// TestPrelude: the statements with which Belay begins a transaction are one round trip. The server
// is not asked again what came with them.
func TestPrelude(t *testing.T) {
	s, seen := newTracedShop(t)
	const claims = "SELECT belay_once, SELECT set_config, INSERT belay_once, SELECT set_config, SELECT pg_current_xact"
	sell := func(ctx context.Context, tx *gorm.DB) error {
		return tx.Create(&order{No: ctx.Value(noKey{}).(string)}).Error
	}
	for name, of := range map[string]struct {
		call func(ctx context.Context, no string) error
		want []string
	}{
		"Apply, For": {
			func(ctx context.Context, no string) error { return s.apply(ctx, no) },
			[]string{"BEGIN, SELECT orders, " + claims, "INSERT orders", "COMMIT"},
		},
		"Apply": {
			func(ctx context.Context, no string) error {
				return s.Apply(ctx, "order:"+no, guard.Insert(&order{No: no}))
			},
			[]string{"BEGIN, SELECT orders, SELECT pg_current_xact", "INSERT orders", "COMMIT"},
		},
		"Do, For": {
			func(ctx context.Context, no string) error {
				return s.Do(ctx, "order:"+no, sell, guard.For(selling(no)))
			},
			[]string{"BEGIN, " + claims, "INSERT orders", "COMMIT"},
		},
		"Once": {
			func(ctx context.Context, no string) error {
				_, err := guard.Once(ctx, s.Guard.Guard, selling(no), func(ctx context.Context, tx *gorm.DB) (int, error) { return 1, sell(ctx, tx) })
				return err
			},
			[]string{"BEGIN, " + claims, "INSERT orders", "INSERT belay_answer", "COMMIT"},
		},
	} {
		// The first ones read the catalogue, and have statements prepared. A slow one asks at its end.
		for i := 0; i < 3 || i < 20 && !slices.Equal(seen.all, of.want); i++ {
			seen.all = nil
			no := fmt.Sprint(name, i)
			wantNil(t, of.call(context.WithValue(bg, noKey{}, no), no))
		}
		if !slices.Equal(seen.all, of.want) {
			t.Errorf("%s: %q, want %q", name, seen.all, of.want)
		}
	}
	s.wantEvents(0)
}

// noKey is the key of the number of an order in a context.
type noKey struct{}

// TestPreludeIsRefused: what was there before is a repeat, or a row of another, as without a
// pipeline. What the server refuses leaves nothing.
func TestPreludeIsRefused(t *testing.T) {
	s, _ := newTracedShop(t)
	wantNil(t, s.apply(bg, "warm"))
	wantNil(t, s.apply(bg, "both"))
	wantNil(t, s.apply(bg, "claim"))
	_, err := s.pool.Exec(bg, "DELETE FROM orders WHERE no = 'claim'; INSERT INTO orders (no, amount) VALUES ('row', 1); ALTER TABLE orders ADD CHECK (no <> 'odd')")
	wantNil(t, err)
	for _, again := range []bool{false, true} {
		wantIs(t, s.apply(bg, "both"), guard.ErrDuplicate)
		wantIs(t, s.apply(bg, "claim"), guard.ErrDuplicate)
		wantIs(t, s.apply(bg, "row"), guard.ErrExists)
		if err := s.apply(bg, "odd"); err == nil || errors.Is(err, guard.ErrDuplicate) {
			t.Errorf("again %t: a row that a CHECK refuses: %v", again, err)
		}
	}
	if orders, claims := s.count(), s.claims(); orders != 3 || claims != 3 {
		t.Errorf("%d orders and %d claims, want 3 of each", orders, claims)
	}
	s.wantEvents(0)
}

// waiting returns how many sessions wait for a lock of another.
func (s *shop) waiting() (n int) {
	s.t.Helper()
	wantNil(s.t, s.pool.QueryRow(bg, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n))
	return n
}

func (s *shop) awaitWaiting() {
	s.t.Helper()
	testwait.Until(s.t, "the claim waits", func() bool { return s.waiting() > 0 })
}

// connect returns a connection beside the pool, to the server itself.
func (s *shop) connect() *pgx.Conn {
	s.t.Helper()
	direct, err := pgx.Connect(bg, s.pool.Config().ConnString())
	wantNil(s.t, err)
	s.t.Cleanup(func() { wantNil(s.t, direct.Close(bg)) })
	return direct
}

// claimElsewhere deletes the orders, and has another transaction make the claims that were made. It
// returns that transaction.
func (s *shop) claimElsewhere() pgx.Tx {
	s.t.Helper()
	direct := s.connect()
	_, err := direct.Exec(bg, "CREATE TABLE kept AS SELECT * FROM belay_once; DELETE FROM belay_once; DELETE FROM orders")
	wantNil(s.t, err)
	tx, err := direct.Begin(bg)
	wantNil(s.t, err)
	_, err = tx.Exec(bg, "INSERT INTO belay_once SELECT * FROM kept")
	wantNil(s.t, err)
	return tx
}

func (s *shop) claims() (n int) {
	s.t.Helper()
	wantNil(s.t, s.pool.QueryRow(bg, "SELECT COUNT(*) FROM belay_once").Scan(&n))
	return n
}

// TestOverlapBehindPrelude: a row that was looked for with the BEGIN, and not found, was inserted while
// this caller had the lock. So was a claim, while the prelude waited for its end.
func TestOverlapBehindPrelude(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "warm"))
	t.Run("row", func(t *testing.T) {
		err := s.Apply(bg, "order:hooked", guard.Insert(&hooked{No: "hooked", before: func() {
			_, err := s.pool.Exec(bg, insertOrder, "hooked", 1)
			wantNil(t, err)
		}}), guard.For(selling("hooked")))
		wantIs(t, err, guard.ErrIntercepted)
		s.wantEvents(1)
	})
	t.Run("claim", func(t *testing.T) {
		wantNil(t, s.apply(bg, "1")) // whose claim has the keys that the next one has
		tx := s.claimElsewhere()
		done := make(chan error)
		go func() { done <- s.apply(bg, "1", guard.Wait(time.Hour)) }()
		s.awaitWaiting()
		wantNil(t, tx.Commit(bg))
		wantIs(t, <-done, guard.ErrIntercepted)
		s.wantEvents(2)
	})
}

// hooked is an order with a hook.
type hooked struct {
	ID     int64
	No     string `gorm:"uniqueIndex"`
	Amount int

	before func()
}

// TableName implements gorm's schema.Tabler.
func (*hooked) TableName() string { return "orders" }

// BeforeCreate is gorm's hook.
func (h *hooked) BeforeCreate(*gorm.DB) error {
	h.before()
	return nil
}

// TestOperationRunsBehindPrelude: neither an operation nor a hook of its rows runs before the claim is made.
func TestOperationRunsBehindPrelude(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "1"))
	ran := 0
	run := func(context.Context, *gorm.DB) error { ran++; return nil }
	wantIs(t, s.Do(bg, "order:1", run, guard.For(selling("1"))), guard.ErrDuplicate)
	wantIs(t, s.Apply(bg, "order:1", guard.Insert(&hooked{No: "1", before: func() { ran++ }}), guard.For(selling("1"))), guard.ErrDuplicate)
	if ran != 0 {
		t.Errorf("the operation of a repeat ran %d times", ran)
	}
}

// TestFailedBehindPrelude: PostgreSQL executes the COMMIT of a failed transaction as a ROLLBACK. The
// server's last answer shows that it has failed, whatever the operation returns.
func TestFailedBehindPrelude(t *testing.T) {
	s, _ := newTracedShop(t)
	var earlier *pgx.Conn // of the only connection
	for name, fails := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"a statement":                  func(ctx context.Context, tx pgx.Tx) error { return failing(ctx, tx) },
		"Conn":                         func(ctx context.Context, tx pgx.Tx) error { return failing(ctx, tx.Conn()) },
		"Conn of an earlier operation": func(ctx context.Context, _ pgx.Tx) error { return failing(ctx, earlier) },
	} {
		wantNil(t, s.do("order:earlier", func(_ context.Context, tx pgx.Tx) error {
			earlier = tx.Conn()
			return nil
		}))
		err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
			wantNil(t, sells("1")(ctx, tx))
			if fails(ctx, tx) == nil {
				t.Errorf("%s: the statement has not failed", name)
			}
			return nil
		}, guard.For(selling("1")))
		if err == nil || s.count() != 0 || s.claims() != 0 {
			t.Errorf("%s: %v, %d orders and %d claims, want an error and none", name, err, s.count(), s.claims())
		}
	}
}

// failing sends a statement that fails.
func failing(ctx context.Context, c interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}) error {
	_, err := c.Exec(ctx, "SELECT none")
	return err
}
