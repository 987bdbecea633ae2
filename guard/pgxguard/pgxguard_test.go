package pgxguard_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"
	"gorm.io/gorm"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/guard/pgxguard"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

const schema = `CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, no TEXT NOT NULL UNIQUE, amount INT NOT NULL);
	CREATE TABLE stocks (id BIGINT PRIMARY KEY, remains INT NOT NULL, version BIGINT NOT NULL DEFAULT 1)`

// A shop is a Guard on a pool of pgx.
type shop struct {
	*guardtest.Guard
	t    *testing.T
	pool *pgxpool.Pool
	db   *gorm.DB
}

func newShop(t *testing.T) *shop {
	t.Helper()
	config, err := pgxpool.ParseConfig(teststack.Postgres(t))
	wantNil(t, err)
	config.MaxConns = 6
	return newShopOf(t, config)
}

// newShopOf is newShop with another configuration of the pool.
func newShopOf(t *testing.T, config *pgxpool.Config) *shop {
	t.Helper()
	pool, db := open(t, config)
	_, err := pool.Exec(bg, schema)
	wantNil(t, err)
	wantNil(t, once.Migrate(bg, db))
	return &shop{guardtest.New(t, db), t, pool, db}
}

// configure gives the shop a Guard and locks of another configuration.
func (s *shop) configure(locks lock.Config, cfg guard.Config) {
	s.t.Helper()
	locker, err := lock.New(s.Engine(), locks)
	wantNil(s.t, err)
	cfg.Service, cfg.Publisher = "test", &s.Events
	g, err := guard.New(s.db, locker, cfg)
	wantNil(s.t, err)
	s.Guard.Guard = g
	s.t.Cleanup(func() { wantNil(s.t, errors.Join(g.Close(bg), locker.Close(bg))) })
}

// open opens a pool of pgx, which is closed when the test ends, and a database on it.
func open(tb testing.TB, config *pgxpool.Config) (*pgxpool.Pool, *gorm.DB) {
	tb.Helper()
	pool, err := pgxpool.NewWithConfig(bg, config)
	wantNil(tb, err)
	tb.Cleanup(pool.Close)
	side := stdlib.OpenDBFromPool(pool)
	tb.Cleanup(func() { _ = side.Close() })
	db, err := dbguard.Open(bg, side)
	wantNil(tb, err)
	return pool, db
}

type op = func(ctx context.Context, tx pgx.Tx) error

func (s *shop) do(key string, f op, opts ...guard.Option) error {
	return pgxguard.Do(bg, s.Guard.Guard, key, f, opts...)
}

func (s *shop) count() (n int) {
	s.t.Helper()
	wantNil(s.t, s.pool.QueryRow(bg, "SELECT COUNT(*) FROM orders").Scan(&n))
	return n
}

func orderRow(no string) guard.Option { return guard.Protects(guard.Row("orders", "no", no)) }

const insertOrder = "INSERT INTO orders (no, amount) VALUES ($1, $2)"

func sells(no string) op {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertOrder, no, 1)
		return err
	}
}

// inserts are forms of an INSERT of an order. Each is judged.
var inserts = map[string]func(ctx context.Context, tx pgx.Tx, no string) error{
	"arguments": func(ctx context.Context, tx pgx.Tx, no string) error { return sells(no)(ctx, tx) },
	"literals": func(ctx context.Context, tx pgx.Tx, no string) error {
		_, err := tx.Exec(ctx, "INSERT INTO orders (no, amount) VALUES ('"+no+"', 1)")
		return err
	},
	"named arguments": func(ctx context.Context, tx pgx.Tx, no string) error {
		_, err := tx.Exec(ctx, "INSERT INTO orders (no, amount) VALUES (@no, @amount)", pgx.NamedArgs{"no": no, "amount": 1})
		return err
	},
	"simple protocol": func(ctx context.Context, tx pgx.Tx, no string) error {
		_, err := tx.Exec(ctx, insertOrder, pgx.QueryExecModeSimpleProtocol, no, 1)
		return err
	},
	"prepared": func(ctx context.Context, tx pgx.Tx, no string) error {
		if _, err := tx.Prepare(ctx, "sell", insertOrder); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "sell", no, 1)
		return err
	},
	"returning, QueryRow": func(ctx context.Context, tx pgx.Tx, no string) error {
		var id int64
		return tx.QueryRow(ctx, insertOrder+" RETURNING id", no, 1).Scan(&id)
	},
	"returning, Query": func(ctx context.Context, tx pgx.Tx, no string) error {
		rows, err := tx.Query(ctx, insertOrder+" RETURNING id", no, 1)
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	},
	"batch": func(ctx context.Context, tx pgx.Tx, no string) error {
		var b pgx.Batch
		b.Queue("SELECT 1")
		b.Queue(insertOrder, no, 1)
		return tx.SendBatch(ctx, &b).Close()
	},
	"batch with functions": func(ctx context.Context, tx pgx.Tx, no string) error {
		var b pgx.Batch
		b.Queue(insertOrder+" RETURNING id", no, 1).QueryRow(func(row pgx.Row) error {
			var id int64
			return row.Scan(&id)
		})
		return tx.SendBatch(ctx, &b).Close()
	},
	"batch, one by one": func(ctx context.Context, tx pgx.Tx, no string) error {
		var b pgx.Batch
		b.Queue(insertOrder, no, 1)
		results := tx.SendBatch(ctx, &b)
		_, err := results.Exec()
		return errors.Join(err, results.Close())
	},
	"copy": func(ctx context.Context, tx pgx.Tx, no string) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"no", "amount"}, pgx.CopyFromRows([][]any{{no, 1}}))
		return err
	},
	"a query": func(ctx context.Context, tx pgx.Tx, no string) error {
		_, err := tx.Exec(ctx, "INSERT INTO orders (no, amount) SELECT $1, 1", no)
		return err
	},
	"nested": func(ctx context.Context, tx pgx.Tx, no string) error {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return sells(no)(ctx, tx) })
	},
}

// TestRepeat: the repeat of an INSERT is a duplicate, in each form, and has pgx's error in it.
func TestRepeat(t *testing.T) {
	s := newShop(t)
	for form, insert := range inserts {
		t.Run(form, func(t *testing.T) {
			f := func(ctx context.Context, tx pgx.Tx) error { return insert(ctx, tx, form) }
			wantNil(t, s.do("order:"+form, f, orderRow(form)))
			err := s.do("order:"+form, f, orderRow(form))
			wantIs(t, err, guard.ErrDuplicate)
			if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "23505" {
				t.Errorf("err = %v, want pgx's in it", err)
			}
		})
	}
	if n := s.count(); n != len(inserts) {
		t.Errorf("%d orders, want %d", n, len(inserts))
	}
	s.wantEvents(0)
}

// TestOverlap: a lock that was lost under an INSERT is reported, in each form.
func TestOverlap(t *testing.T) {
	s := newShop(t)
	n := 0
	for form, insert := range inserts {
		n++
		t.Run(form, func(t *testing.T) {
			err := s.do("order:"+form, func(ctx context.Context, tx pgx.Tx) error {
				var n int
				if err := tx.QueryRow(ctx, "SELECT COUNT(*) FROM orders").Scan(&n); err != nil {
					return err
				}
				s.Forget("order:" + form)
				wantNil(t, pgxguard.Do(bg, s.Peer(t, s.db), "order:"+form, sells(form), orderRow(form)))
				return insert(ctx, tx, form)
			}, orderRow(form))
			wantIs(t, err, guard.ErrIntercepted)
		})
	}
	s.wantEvents(n)
}

// TestOtherDuplicate: a row that is not protected keeps pgx's error.
func TestOtherDuplicate(t *testing.T) {
	s := newShop(t)
	for form, insert := range inserts {
		f := func(ctx context.Context, tx pgx.Tx) error { return insert(ctx, tx, form) }
		wantNil(t, s.do("order:"+form, f, orderRow(form)))
		err := s.do("order:7", f, orderRow("7"))
		if _, ok := errors.AsType[*pgconn.PgError](err); !ok || errors.Is(err, guard.ErrDuplicate) {
			t.Errorf("%s: err = %v, want pgx's", form, err)
		}
	}
	s.wantEvents(0)
}

// TestUpdates: UpdateRow and Changed judge updates by version.
func TestUpdates(t *testing.T) {
	s := newShop(t)
	_, err := s.pool.Exec(bg, "INSERT INTO stocks (id, remains) VALUES (1, 10)")
	wantNil(t, err)
	row := guard.Row("stocks", "id", 1)
	byRow := func(version int64) op {
		return func(ctx context.Context, _ pgx.Tx) error {
			return guard.UpdateRow(ctx, row, version, "remains = remains - $1", 1)
		}
	}
	byHand := func(version int64) op {
		return func(ctx context.Context, tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, "UPDATE stocks SET remains = remains - 1, version = version + 1 WHERE id = 1 AND version = $1", version)
			return guard.Changed(ctx, row, version, tag.RowsAffected(), err)
		}
	}
	wantNil(t, s.do("stock:1", byRow(1), guard.Protects(row)))
	wantIs(t, s.do("stock:1", byRow(1), guard.Protects(row)), guard.ErrStale)
	wantNil(t, s.do("stock:1", byHand(2), guard.Protects(row)))
	wantIs(t, s.do("stock:1", byHand(2), guard.Protects(row)), guard.ErrStale)
	returning := func(ctx context.Context, tx pgx.Tx) error {
		var remains int
		err := tx.QueryRow(ctx, "UPDATE stocks SET version = version + 1 WHERE id = 1 AND version = 2 RETURNING remains").Scan(&remains)
		wantIs(t, err, pgx.ErrNoRows)
		return guard.Changed(ctx, row, 2, 0, err)
	}
	wantIs(t, s.do("stock:1", returning, guard.Protects(row)), guard.ErrStale)
	s.wantEvents(0)
}

// TestOnce: a request is served once, and its answer is kept.
func TestOnce(t *testing.T) {
	s := newShop(t)
	request := once.Request{Operation: "sell", Scope: once.Anyone, ID: "r-1"}
	for range 2 {
		answer, err := pgxguard.Once(bg, s.Guard.Guard, request, func(ctx context.Context, tx pgx.Tx) (id int64, err error) {
			err = tx.QueryRow(ctx, insertOrder+" RETURNING id", "1", 1).Scan(&id)
			return id, err
		})
		wantNil(t, err)
		if answer.Value != 1 {
			t.Errorf("answer = %+v, want 1", answer)
		}
	}
	if n := s.count(); n != 1 {
		t.Errorf("%d orders, want one", n)
	}
}

// TestEndsNothing: what would end the operation's transaction is refused, and then the operation
// can't be committed.
func TestEndsNothing(t *testing.T) {
	s := newShop(t)
	for name, end := range map[string]op{
		"Commit":   func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
		"Rollback": func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
		"COMMIT": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "commit")
			return err
		},
		"by its Conn": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, "ROLLBACK")
			return err
		},
		"batch": func(ctx context.Context, tx pgx.Tx) error {
			var b pgx.Batch
			b.BeginTx(pgx.TxOptions{})
			return tx.SendBatch(ctx, &b).Close()
		},
	} {
		err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
			wantNil(t, sells("1")(ctx, tx))
			err := end(ctx, tx)
			switch name {
			case "by its Conn":
				return err
			case "Commit", "Rollback":
				wantIs(t, err, guard.ErrTxControl)
				return nil // the operation does not look
			}
			return err
		})
		wantIs(t, err, guard.ErrTxControl)
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d orders were committed", n)
	}
}

// TestNested: a transaction that is begun in the operation is a savepoint.
func TestNested(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		in, err := tx.Begin(ctx)
		wantNil(t, err)
		wantNil(t, sells("undone")(ctx, in))
		if err := sells("outer")(ctx, tx); err == nil {
			t.Error("the outer transaction takes a statement")
		}
		wantNil(t, in.Rollback(ctx))
		wantIs(t, in.Rollback(ctx), pgx.ErrTxClosed)
		wantIs(t, sells("late")(ctx, in), pgx.ErrTxClosed)
		_, err = in.Query(ctx, "SELECT 1") //nolint:sqlclosecheck // there are none
		wantIs(t, err, pgx.ErrTxClosed)
		wantIs(t, in.SendBatch(ctx, &pgx.Batch{}).Close(), pgx.ErrTxClosed)
		in, err = tx.Begin(ctx)
		wantNil(t, err)
		wantNil(t, sells("kept")(ctx, in))
		return in.Commit(ctx)
	}))
	wantIs(t, s.do("order:2", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Begin(ctx)
		return err
	}), guard.ErrTxControl)
	if n := s.count(); n != 1 {
		t.Errorf("%d orders, want one", n)
	}
}

// TestLeftOpen: rows and batches that are left open keep the operation from being committed, and its
// connection comes back.
func TestLeftOpen(t *testing.T) {
	s := newShop(t)
	for name, leave := range map[string]op{
		"rows": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, "SELECT generate_series(1, 100000)") //nolint:sqlclosecheck // that is the point
			return err
		},
		"batch": func(ctx context.Context, tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue(insertOrder, "batch", 1)
			tx.SendBatch(ctx, &b)
			return nil
		},
	} {
		for range 10 {
			err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
				wantNil(t, sells(name)(ctx, tx))
				return leave(ctx, tx)
			})
			wantIs(t, err, pinned.ErrRowsOpen)
		}
	}
	err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT generate_series(1, 3)")
		wantNil(t, err)
		defer rows.Close()
		_, err = tx.Exec(ctx, "SELECT 1")
		wantIs(t, err, pinned.ErrRowsOpen)
		return nil
	})
	wantNil(t, err)
	if n := s.count(); n != 0 {
		t.Errorf("%d orders were committed", n)
	}
	testwait.Until(t, "no connection is away", func() bool { return s.pool.Stat().AcquiredConns() == 0 })
}

// TestUnreadRow: a row that the program can't read is its error alone. A server's error behind it
// keeps the operation from being committed.
func TestUnreadRow(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, "SELECT 'x'").Scan(&n); err == nil {
			t.Error("read x as a number")
		}
		return sells("1")(ctx, tx)
	}))
	err := s.do("order:2", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT 1 / (2 - g) FROM generate_series(1, 2) g")
		wantNil(t, err)
		var no chan int
		for rows.Next() {
			_ = rows.Scan(&no)
		}
		rows.Close()
		return nil // the operation does not look
	})
	if err == nil {
		t.Error("committed, though a statement has failed")
	}
	if n := s.count(); n != 1 {
		t.Errorf("%d orders, want one", n)
	}
}

// TestPanics: an operation that panics, or a value or a function of its own, is rolled back, and
// its connection comes back.
func TestPanics(t *testing.T) {
	s := newShop(t)
	for name, f := range map[string]op{
		"op": func(context.Context, pgx.Tx) error { panic("boom") },
		"value": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insertOrder, bad{}, 1)
			return err
		},
		"batch": func(ctx context.Context, tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue("SELECT 1").Exec(func(pgconn.CommandTag) error { panic("boom") })
			return tx.SendBatch(ctx, &b).Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			func() {
				defer func() { _ = recover() }()
				err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
					wantNil(t, sells("1")(ctx, tx))
					return f(ctx, tx)
				})
				t.Errorf("err = %v, want a panic", err)
			}()
			if n := s.count(); n != 0 {
				t.Errorf("%d orders were committed", n)
			}
		})
	}
	wantNil(t, s.do("order:1", sells("1")))
}

// bad is a value that panics.
type bad struct{}

func (bad) TextValue() (pgtype.Text, error) { panic("boom") }

// TestContextEnds: a context that ends in a statement ends the operation.
func TestContextEnds(t *testing.T) {
	s := newShop(t)
	err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		wantNil(t, sells("1")(ctx, tx))
		short, cancel := context.WithCancel(ctx)
		cancel()
		_, err := tx.Exec(short, "SELECT pg_sleep(10)")
		wantIs(t, err, context.Canceled)
		return nil
	})
	if err == nil {
		t.Error("committed, though nobody knows what became of a statement")
	}
	wantNil(t, s.do("order:2", sells("2")))
	if n := s.count(); n != 1 {
		t.Errorf("%d orders, want one", n)
	}
}

// TestPoolOfOne: an operation takes one connection.
func TestPoolOfOne(t *testing.T) {
	s := newShop(t)
	config := s.pool.Config()
	config.MaxConns = 1
	_, db := open(t, config)
	g := guardtest.New(t, db)
	var err error
	for range 2 {
		err = pgxguard.Do(bg, g.Guard, "order:1", sells("1"), orderRow("1"))
	}
	wantIs(t, err, guard.ErrDuplicate)
}

// TestPreparedElsewhere: a statement that the pool has prepared is executed by its name.
func TestPreparedElsewhere(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Conn().Prepare(ctx, "sell", insertOrder); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "sell", "1", 1)
		return err
	}, orderRow("1")))
	if n := s.count(); n != 1 {
		t.Errorf("%d orders, want one", n)
	}
}

// TestSessionIsReadOnce: a connection of the pool is asked once what its session is.
func TestSessionIsReadOnce(t *testing.T) {
	s := newShop(t)
	config := s.pool.Config()
	config.MaxConns = 1
	seen := &tracer{}
	config.ConnConfig.Tracer = seen
	_, db := open(t, config)
	g := guardtest.New(t, db)
	counts := make([]int, 4)
	for i := range counts {
		seen.n = 0
		no := string(rune('a' + i))
		wantNil(t, pgxguard.Do(bg, g.Guard, "order:"+no, sells(no), orderRow(no)))
		counts[i] = seen.n
	}
	if counts[0] <= counts[1] || counts[1] != counts[3] {
		t.Errorf("statements of the operations: %v, want fewer after the first one", counts)
	}
	if counts[3] > 6 {
		t.Errorf("%d statements of an operation: %q", counts[3], seen.last)
	}
}

// tracer counts the statements of a connection.
type tracer struct {
	n    int
	last []string
}

// TraceQueryStart implements pgx.QueryTracer.
func (c *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.n++
	c.last = append(c.last, d.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestOutside: a Tx is of an operation, of a Guard on a pool of pgx.
func TestOutside(t *testing.T) {
	s := newShop(t)
	_, err := pgxguard.Tx(bg)
	wantIs(t, err, dbguard.ErrOutside)
	var late pgx.Tx
	wantNil(t, s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		late = tx
		same, err := pgxguard.Tx(ctx)
		wantNil(t, err)
		if same != tx {
			t.Error("another Tx")
		}
		_, err = same.Prepare(ctx, "one", "SELECT 1")
		wantNil(t, err)
		if same.Conn() != tx.Conn() {
			t.Error("another connection")
		}
		return sells("1")(ctx, tx)
	}))
	_, err = late.Exec(bg, "SELECT 1")
	wantIs(t, err, pgx.ErrTxClosed)
	wantIs(t, late.QueryRow(bg, "SELECT 1").Scan(), pgx.ErrTxClosed)
	_, err = late.Begin(bg)
	wantIs(t, err, pgx.ErrTxClosed)
	_, err = late.CopyFrom(bg, pgx.Identifier{"orders"}, nil, pgx.CopyFromRows(nil))
	wantIs(t, err, pgx.ErrTxClosed)
	_, err = late.Prepare(bg, "two", "SELECT 1")
	wantIs(t, err, pgx.ErrTxClosed)
	wantIs(t, late.Commit(bg), pgx.ErrTxClosed)
	wantIs(t, late.SendBatch(bg, &pgx.Batch{}).Close(), pgx.ErrTxClosed)
	objects := late.LargeObjects()
	_, err = objects.Create(bg, 0)
	wantIs(t, err, pgx.ErrTxClosed)
	if err := pgxguard.Do(bg, s.Guard.Guard, "order:1", nil); err == nil {
		t.Error("an operation that is nil was done")
	}
}

// TestLargeObject: large objects are refused.
func TestLargeObject(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		objects := tx.LargeObjects()
		_, err := objects.Create(ctx, 0)
		wantIs(t, err, pgx.ErrTxClosed)
		return sells("1")(ctx, tx)
	}))
}

// TestUncomparable: the error of a Scanner may be of a type that can't be compared.
func TestUncomparable(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT 1").Scan(&picky{}); err == nil {
			t.Error("scanned")
		}
		err := tx.QueryRow(ctx, insertOrder+" RETURNING id", "1", 1).Scan(&picky{})
		if err == nil {
			t.Error("scanned")
		}
		return nil
	}, orderRow("1")))
	wantIs(t, s.do("order:1", sells("1"), orderRow("1")), guard.ErrDuplicate)
}

// fields is an error that can't be compared.
type fields []string

func (fields) Error() string { return "fields" }

type picky struct{}

// Scan implements sql.Scanner.
func (*picky) Scan(any) error { return fields{"a"} }

// TestNothingBehindTheEnd: what comes after the Conn has ended the transaction is not sent.
func TestNothingBehindTheEnd(t *testing.T) {
	s := newShop(t)
	err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		own, err := tx.Conn().Begin(ctx)
		wantNil(t, err)
		wantNil(t, own.Commit(ctx))
		wantIs(t, sells("1")(ctx, tx), guard.ErrTxControl)
		_, err = tx.Prepare(ctx, "one", "SELECT 1")
		wantIs(t, err, guard.ErrTxControl)
		return nil
	})
	wantIs(t, err, guard.ErrTxControl)
	if n := s.count(); n != 0 {
		t.Errorf("%d orders were committed", n)
	}
}

// TestBatch: an error of the program's keeps no query from being sent, and the rows of a result
// are closed before the next one.
func TestBatch(t *testing.T) {
	s := newShop(t)
	mine := errors.New("mine")
	wantNil(t, s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue("SELECT 1").Exec(func(pgconn.CommandTag) error { return mine })
		b.Queue(insertOrder, "1", 1).Exec(func(pgconn.CommandTag) error {
			t.Error("a function is called behind an error")
			return nil
		})
		results := tx.SendBatch(ctx, &b)
		wantIs(t, results.Close(), mine)
		wantIs(t, results.Close(), mine)
		return nil
	}))
	wantNil(t, s.do("order:2", func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue("SELECT generate_series(1, 100)")
		b.Queue("SELECT generate_series(1, 100)")
		b.Queue(insertOrder, "2", 1)
		results := tx.SendBatch(ctx, &b)
		rows, err := results.Query()
		wantNil(t, err)
		if !rows.Next() {
			t.Error("there is no row")
		}
		var n int
		wantNil(t, results.QueryRow().Scan(&n))
		wantNil(t, results.Close())
		_, err = results.Exec()
		if err == nil {
			t.Error("a batch that is closed has a result")
		}
		return nil
	}))
	err := s.do("order:3", func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(insertOrder, "1", 1)
		b.Queue(insertOrder, "3", 1)
		err := tx.SendBatch(ctx, &b).Close()
		if _, ok := errors.AsType[*pgconn.PgError](err); !ok {
			t.Errorf("err = %v, want pgx's", err)
		}
		return nil // the operation does not look
	})
	if err == nil {
		t.Error("committed, though a statement has failed")
	}
	if n := s.count(); n != 2 {
		t.Errorf("%d orders, want two", n)
	}
}

// TestTwoFronts: one operation writes by pgx and by database/sql.
func TestTwoFronts(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
		wantNil(t, sells("1")(ctx, tx))
		other, err := guard.SQL(ctx)
		wantNil(t, err)
		var n int
		wantNil(t, other.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders").Scan(&n))
		if n != 1 {
			t.Errorf("database/sql sees %d orders, want one", n)
		}
		_, err = other.ExecContext(ctx, insertOrder, "2", 1)
		return err
	}))
	if n := s.count(); n != 2 {
		t.Errorf("%d orders, want two", n)
	}
}

// TestOtherDriver: a pool that is not pgx's is refused in words.
func TestOtherDriver(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite", "CREATE TABLE orders (no TEXT PRIMARY KEY)")
	err := pgxguard.Do(bg, g.Guard, "order:1", sells("1"))
	if err == nil || !strings.Contains(err.Error(), "OpenDBFromPool") {
		t.Errorf("err = %v", err)
	}
}

// TestWrappedConnection: pgx's connection is found below what wraps it, such as otelsql's.
func TestWrappedConnection(t *testing.T) {
	s := newShop(t)
	side := sql.OpenDB(wrapping{stdlib.GetPoolConnector(s.pool)})
	t.Cleanup(func() { _ = side.Close() })
	db, err := dbguard.Open(bg, side)
	wantNil(t, err)
	s.Guard = guardtest.New(t, db)
	wantNil(t, s.do("order:1", sells("1"), orderRow("1")))
	wantIs(t, s.do("order:1", sells("1"), orderRow("1")), guard.ErrDuplicate)
	if n := s.count(); n != 1 {
		t.Errorf("%d orders, want one", n)
	}
}

type wrapping struct{ driver.Connector }

func (w wrapping) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return wrappedConn{c.(*stdlib.Conn)}, nil
}

type wrappedConn struct{ *stdlib.Conn }

func (c wrappedConn) Raw() driver.Conn { return c.Conn }

// wantEvents checks that there are n events, each of an overlap.
func (s *shop) wantEvents(n int) {
	s.t.Helper()
	all := s.Events.All()
	if len(all) != n {
		s.t.Errorf("%d events, want %d", len(all), n)
	}
	for _, e := range all {
		if e.Verdict != notify.VerdictOverlap {
			s.t.Errorf("event = %+v, want an overlap", e)
		}
	}
}

func wantNil(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantIs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("err = %v, want one that matches %v", err, target)
	}
}
