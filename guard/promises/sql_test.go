package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/notify"
)

// sqlOp is an operation that writes SQL.
type sqlOp = func(ctx context.Context, tx *sql.Tx) error

// marks writes the marks of arguments, ?, as the database has them.
func (e *env) marks(query string) string {
	if e.db.Name() != "postgres" {
		return query
	}
	var b strings.Builder
	n := '0'
	for _, c := range query {
		if c != '?' {
			b.WriteRune(c)
			continue
		}
		n++
		b.WriteString("$" + string(n))
	}
	return b.String()
}

// sells returns an operation that inserts an order.
func (e *env) sells(no string) sqlOp {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, e.marks("INSERT INTO orders (no, amount) VALUES (?, ?)"), no, 1)
		return err
	}
}

// eachSQL runs f on every database, with a Guard on a *gorm.DB and with one on a *sql.DB.
func eachSQL(t *testing.T, f func(e *env)) {
	each(t, func(e *env) {
		pool, err := e.db.DB()
		wantNil(t, err)
		opened, err := dbguard.Open(bg, pool)
		wantNil(t, err)
		for name, db := range map[string]*gorm.DB{"gorm": e.db, "sql": opened} {
			e.t.Run(name, func(t *testing.T) {
				wantNil(t, e.db.Exec("DELETE FROM orders").Error)
				wantNil(t, e.db.Exec("DELETE FROM stocks").Error)
				f(&env{Guard: guardtest.New(t, db), t: t, db: e.db, open: e.open})
			})
		}
	})
}

func orderRow(no string) guard.Option { return guard.Protects(guard.Row("orders", "no", no)) }

// sqlInserts are forms of an INSERT of an order. Each is judged.
func (e *env) sqlInserts() map[string]func(ctx context.Context, tx *sql.Tx, no string) error {
	exec := func(query string, args ...any) func(ctx context.Context, tx *sql.Tx, no string) error {
		return func(ctx context.Context, tx *sql.Tx, no string) error {
			for i, a := range args {
				if a == "no" {
					args[i] = no
				}
			}
			_, err := tx.ExecContext(ctx, e.marks(strings.ReplaceAll(query, "{no}", no)), args...)
			return err
		}
	}
	all := map[string]func(ctx context.Context, tx *sql.Tx, no string) error{
		"arguments": exec("INSERT INTO orders (no, amount) VALUES (?, ?)", "no", 1),
		"literals":  exec("INSERT INTO orders (no, amount) VALUES ('{no}', 1)"),
		"no context": func(_ context.Context, tx *sql.Tx, no string) error {
			_, err := tx.Exec(e.marks("INSERT INTO orders (amount, no) VALUES (1, ?)"), no)
			return err
		},
		"prepared": func(ctx context.Context, tx *sql.Tx, no string) error {
			st, err := tx.PrepareContext(ctx, e.marks("INSERT INTO orders (no, amount) VALUES (?, 1)"))
			if err != nil {
				return err
			}
			defer st.Close()
			_, err = st.ExecContext(ctx, no)
			return err
		},
		"prepared outside": func(ctx context.Context, tx *sql.Tx, no string) error {
			st, err := e.Pool().PrepareContext(bg, e.marks("INSERT INTO orders (no, amount) VALUES (?, 1)"))
			if err != nil {
				return err
			}
			defer st.Close()
			in := tx.StmtContext(ctx, st)
			defer in.Close()
			_, err = in.ExecContext(ctx, no)
			return err
		},
		"by the handle": func(ctx context.Context, _ *sql.Tx, no string) error {
			_, err := e.Pool().ExecContext(ctx, e.marks("INSERT INTO orders (no, amount) VALUES (?, 1)"), no)
			return err
		},
		"several rows": func(ctx context.Context, tx *sql.Tx, no string) error {
			_, err := tx.ExecContext(ctx, e.marks("INSERT INTO orders (no, amount) VALUES (?, 1), (?, 1)"), no, no+"-second")
			return err
		},
	}
	if e.db.Name() != "sqlite" { // its error does not name the value
		all["a query"] = exec("INSERT INTO orders (no, amount) SELECT '{no}', 1")
	}
	if e.db.Name() == "mysql" {
		all["set"] = exec("INSERT INTO orders SET no = ?, amount = 1", "no")
		return all
	}
	all["with"] = exec("WITH new AS (SELECT '{no}' AS no) INSERT INTO orders (no, amount) SELECT no, 1 FROM new")
	if e.db.Name() == "sqlite" {
		delete(all, "with")
	}
	all["returning"] = func(ctx context.Context, tx *sql.Tx, no string) error {
		var id int64
		return tx.QueryRowContext(ctx, e.marks("INSERT INTO orders (no, amount) VALUES (?, 1) RETURNING id"), no).Scan(&id)
	}
	all["returning rows"] = func(ctx context.Context, tx *sql.Tx, no string) error {
		rows, err := tx.QueryContext(ctx, e.marks("INSERT INTO orders (no, amount) VALUES (?, 1) RETURNING id"), no)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	return all
}

// TestSQLRepeat: the repeat of an INSERT in SQL is a duplicate, in each form.
func TestSQLRepeat(t *testing.T) {
	eachSQL(t, func(e *env) {
		for form, insert := range e.sqlInserts() {
			e.t.Run(form, func(t *testing.T) {
				no := strings.ReplaceAll(form, " ", "-")
				op := func(ctx context.Context, tx *sql.Tx) error { return insert(ctx, tx, no) }
				wantNil(t, e.DoSQL(bg, "order:"+no, op, orderRow(no)))
				err := e.DoSQL(bg, "order:"+no, op, orderRow(no))
				wantIs(t, err, guard.ErrDuplicate)
				if c, ok := errors.AsType[*dbguard.ConflictError](err); !ok || c.Err == nil || !strings.Contains(err.Error(), c.Err.Error()) && c.Kind != dbguard.Duplicate {
					t.Errorf("err = %v, want the driver's in it", err)
				}
			})
		}
		e.wantNoEvent()
	})
}

// TestSQLOverlap: a lock that was lost under an INSERT in SQL is reported.
func TestSQLOverlap(t *testing.T) {
	eachSQL(t, func(e *env) {
		if e.db.Name() == "sqlite" {
			return // nobody writes while another transaction does
		}
		for form, insert := range e.sqlInserts() {
			e.t.Run(form, func(t *testing.T) {
				before := len(e.Events.All())
				no := "over-" + strings.ReplaceAll(form, " ", "-")
				err := e.DoSQL(bg, "order:"+no, func(ctx context.Context, tx *sql.Tx) error {
					var n int64
					if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders").Scan(&n); err != nil {
						return err
					}
					e.Forget("order:" + no)
					peer := e.Peer(t, e.db)
					wantNil(t, peer.DoSQL(bg, "order:"+no, e.sells(no), orderRow(no)))
					return insert(ctx, tx, no)
				}, orderRow(no))
				wantIs(t, err, guard.ErrIntercepted)
				if got := e.Events.All()[before:]; len(got) != 1 || got[0].Verdict != notify.VerdictOverlap {
					t.Errorf("events = %+v, want one overlap", got)
				}
			})
		}
	})
}

// TestSQLNumberForAText: a number that an INSERT gives for a text is the text that the database stores,
// and not each text of that number.
func TestSQLNumberForAText(t *testing.T) {
	eachSQL(t, func(e *env) {
		for _, no := range []string{"1", "01"} {
			wantNil(e.t, e.DoSQL(bg, "order:"+no, e.sells(no), orderRow(no)))
		}
		number := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO orders (no, amount) VALUES (1, 1)")
			return err
		}
		wantIs(e.t, e.DoSQL(bg, "order:1", number, orderRow("1")), guard.ErrDuplicate)
		if err := e.DoSQL(bg, "order:01", number, orderRow("01")); err == nil || errors.Is(err, guard.ErrDuplicate) {
			e.t.Errorf("err = %v, want another", err)
		}
	})
}

// TestSQLRenameIsNoRepeat: an UPDATE that gives a row the name of a protected one is refused, and
// repeats nothing. So it is with that of an upsert.
func TestSQLRenameIsNoRepeat(t *testing.T) {
	eachSQL(t, func(e *env) {
		for _, no := range []string{"7", "8"} {
			wantNil(e.t, e.DoSQL(bg, "order:"+no, e.sells(no), orderRow(no)))
		}
		upsert := " ON CONFLICT (id) DO UPDATE SET no = '7'"
		if e.db.Name() == "mysql" {
			upsert = " ON DUPLICATE KEY UPDATE no = '7'"
		}
		var id int64
		wantNil(e.t, e.db.Raw("SELECT id FROM orders WHERE no = '8'").Scan(&id).Error)
		for _, query := range []string{
			"UPDATE orders SET no = '7' WHERE no = '8'",
			fmt.Sprintf("INSERT INTO orders (id, no, amount) VALUES (%d, '9', 1)", id) + upsert,
		} {
			err := e.DoSQL(bg, "order:7", func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, query)
				return err
			}, orderRow("7"))
			if err == nil || errors.Is(err, guard.ErrDuplicate) {
				e.t.Errorf("%s: err = %v, want the driver's", query, err)
			}
		}
	})
}

// TestSQLOtherDuplicate: a row that is not protected keeps the driver's error, and so does one
// of the table of a protected row.
func TestSQLOtherDuplicate(t *testing.T) {
	eachSQL(t, func(e *env) {
		for _, no := range []string{"7", "8"} {
			wantNil(e.t, e.DoSQL(bg, "order:"+no, e.sells(no), orderRow(no)))
		}
		for name, o := range map[string]guard.Option{"another row": orderRow("7"), "none": guard.Wait(0)} {
			err := e.DoSQL(bg, "order:7", e.sells("8"), o)
			if _, judged := errors.AsType[*dbguard.ConflictError](err); err == nil || errors.Is(err, guard.ErrDuplicate) || judged && name == "none" {
				e.t.Errorf("%s: err = %v, want the driver's", name, err)
			}
		}
		e.wantNoEvent()
	})
}

func (e *env) stockRow(id int64) *guard.TableRow { return guard.Row("stocks", "id", id) }

// TestUpdateRow updates by version: the second one of a version is stale.
func TestUpdateRow(t *testing.T) {
	eachSQL(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 10})
		row := e.stockRow(1)
		take := func(version int64) sqlOp {
			return func(ctx context.Context, _ *sql.Tx) error {
				return guard.UpdateRow(ctx, row, version, e.db.Explain(e.db.Statement.Quote("left")+" = "+e.db.Statement.Quote("left"))+e.marks(" - ?"), 1)
			}
		}
		wantNil(e.t, e.DoSQL(bg, "stock:1", take(1), guard.Protects(row)))
		wantIs(e.t, e.DoSQL(bg, "stock:1", take(1), guard.Protects(row)), guard.ErrStale)
		if got := e.stock(1); got.Left != 9 || got.Version != 2 {
			e.t.Errorf("stock = %+v", got)
		}
		wantIs(e.t, e.DoSQL(bg, "stock:1", take(0), guard.Protects(row)), dbguard.ErrVersion)
		e.wantNoEvent()
	})
}

// TestUpdateRowOverlap: a lock that was lost under an UPDATE by version is reported.
func TestUpdateRowOverlap(t *testing.T) {
	eachSQL(t, func(e *env) {
		if e.db.Name() == "sqlite" {
			return // nobody writes while another transaction does
		}
		e.create(&Stock{ID: 1, Left: 10})
		row := e.stockRow(1)
		take := func(ctx context.Context) error {
			return guard.UpdateRow(ctx, row, 1, e.db.Statement.Quote("left")+" = 1")
		}
		err := e.DoSQL(bg, "stock:1", func(ctx context.Context, tx *sql.Tx) error {
			var version int64
			if err := tx.QueryRowContext(ctx, "SELECT version FROM stocks WHERE id = 1").Scan(&version); err != nil {
				return err
			}
			e.Forget("stock:1")
			wantNil(e.t, e.Peer(e.t, e.db).DoSQL(bg, "stock:1", func(ctx context.Context, _ *sql.Tx) error { return take(ctx) }, guard.Protects(row)))
			return take(ctx)
		}, guard.Protects(row))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "stock:1")
	})
}

// TestChangedAndInserted judge statements that report what they wrote.
func TestChangedAndInserted(t *testing.T) {
	eachSQL(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 10}, &Order{No: "1"})
		ignore := map[string]string{
			"mysql":    "INSERT IGNORE INTO orders (no, amount) VALUES ('1', 1)",
			"postgres": "INSERT INTO orders (no, amount) VALUES ('1', 1) ON CONFLICT DO NOTHING",
			"sqlite":   "INSERT INTO orders (no, amount) VALUES ('1', 1) ON CONFLICT DO NOTHING",
		}[e.db.Name()]
		err := e.DoSQL(bg, "order:1", func(ctx context.Context, tx *sql.Tx) error {
			n, err := written(tx.ExecContext(ctx, ignore))
			return guard.Inserted(ctx, guard.Row("orders", "no", "1"), n, err)
		}, orderRow("1"))
		wantIs(e.t, err, guard.ErrDuplicate)

		take := func(version int64) error {
			return e.DoSQL(bg, "stock:1", func(ctx context.Context, tx *sql.Tx) error {
				n, err := written(tx.ExecContext(ctx, e.marks("UPDATE stocks SET version = version + 1 WHERE id = 1 AND version = ?"), version))
				return guard.Changed(ctx, e.stockRow(1), version, n, err)
			}, guard.Protects(e.stockRow(1)))
		}
		wantNil(e.t, take(1))
		wantIs(e.t, take(1), guard.ErrStale)
		e.wantNoEvent()
	})
}

func written(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// TestSQLEndsNothing: what would end the operation's transaction is refused, and then the
// operation can't be committed.
func TestSQLEndsNothing(t *testing.T) {
	ends := map[string]sqlOp{
		"Commit":   func(_ context.Context, tx *sql.Tx) error { return tx.Commit() },
		"Rollback": func(_ context.Context, tx *sql.Tx) error { return tx.Rollback() },
		"COMMIT": func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "commit")
			return err
		},
	}
	eachSQL(t, func(e *env) {
		for name, end := range ends {
			err := e.DoSQL(bg, "order:1", func(ctx context.Context, tx *sql.Tx) error {
				if err := e.sells("1")(ctx, tx); err != nil {
					return err
				}
				err := end(ctx, tx)
				if name != "COMMIT" {
					wantIs(e.t, err, guard.ErrTxControl)
					return nil // the operation does not look
				}
				return err
			}, orderRow("1"))
			wantIs(e.t, err, guard.ErrTxControl)
		}
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d orders were committed", n)
		}
	})
}

// TestSQLNested: a transaction that is begun inside of an operation is a savepoint.
func TestSQLNested(t *testing.T) {
	eachSQL(t, func(e *env) {
		wantNil(e.t, e.DoSQL(bg, "order:1", func(ctx context.Context, _ *sql.Tx) error {
			for i, no := range []string{"1", "2"} {
				tx, err := e.Pool().BeginTx(ctx, nil)
				wantNil(e.t, err)
				wantNil(e.t, e.sells(no)(ctx, tx))
				if i == 0 {
					wantNil(e.t, tx.Rollback())
				} else {
					wantNil(e.t, tx.Commit())
				}
			}
			return nil
		}))
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d orders, want 1", n)
		}
		wantIs(e.t, e.DoSQL(bg, "order:3", func(ctx context.Context, _ *sql.Tx) error {
			tx, err := e.Pool().BeginTx(ctx, nil)
			wantNil(e.t, err)
			return e.sells("3")(ctx, tx) // and does not end it
		}), guard.ErrTxControl)
	})
}

// TestSQLOutside: no statement runs outside of its operation unnoticed.
func TestSQLOutside(t *testing.T) {
	eachSQL(t, func(e *env) {
		var left *sql.Tx
		wantNil(e.t, e.DoSQL(bg, "order:1", func(ctx context.Context, tx *sql.Tx) error {
			left = tx
			_, err := e.Pool().ExecContext(bg, "DELETE FROM orders")
			wantIs(e.t, err, dbguard.ErrOutside)
			return e.sells("1")(ctx, tx)
		}, orderRow("1")))
		_, err := left.Exec("DELETE FROM orders")
		wantIs(e.t, err, sql.ErrTxDone)
		_, err = e.Pool().Begin()
		wantIs(e.t, err, dbguard.ErrOutside)
		var one int
		wantNil(e.t, e.Pool().QueryRow("SELECT 1").Scan(&one))
		wantIs(e.t, e.Pool().QueryRow("SELECT id FROM orders").Scan(&one), dbguard.ErrOutside)
		if _, err := guard.SQL(bg); err == nil {
			e.t.Error("SQL outside of an operation returned no error")
		}
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d orders, want 1", n)
		}
	})
}

// TestSQLRowsOpen: nothing is committed while rows are open, and the rows of an operation that
// has ended are closed.
func TestSQLRowsOpen(t *testing.T) {
	eachSQL(t, func(e *env) {
		e.create(&Order{No: "1"}, &Order{No: "2"})
		var rows *sql.Rows
		err := e.DoSQL(bg, "order:3", func(ctx context.Context, tx *sql.Tx) (err error) {
			wantNil(e.t, e.sells("3")(ctx, tx))
			rows, err = tx.QueryContext(ctx, "SELECT id FROM orders") //nolint:rowserrcheck,sqlclosecheck // they are left open
			return err
		})
		wantIs(e.t, err, pinned.ErrRowsOpen)
		if rows.Next() {
			e.t.Error("rows of an operation that has ended go on")
		}
		wantNil(e.t, rows.Close())
		if n := e.count(&Order{}); n != 2 {
			e.t.Errorf("%d orders, want 2", n)
		}
	})
}

// TestNumberForAText: MySQL and MariaDB compare a text with a number as numbers, so that the number
// names several rows. Others refuse it or make a text of it.
func TestNumberForAText(t *testing.T) {
	eachSQL(t, func(e *env) {
		if e.db.Name() != "mysql" {
			return
		}
		e.create(&Order{No: "7"}, &Order{No: "07"}, &Order{No: "7a"})
		for _, number := range []any{7, 7.0, uint8(7), true} {
			err := e.DoSQL(bg, "k", e.sells("1"), guard.Protects(guard.Row("orders", "no", number)))
			wantIs(e.t, err, dbguard.ErrUnprotectable)
		}
		wantNil(e.t, e.DoSQL(bg, "k", e.sells("1"), guard.Protects(guard.Row("orders", "no", "1"))))
	})
}

// TestRowIsRefused: a Row that names none is an error that says why.
func TestRowIsRefused(t *testing.T) {
	eachSQL(t, func(e *env) {
		for says, row := range map[string]*guard.TableRow{
			"no table nowhere":   guard.Row("nowhere", "id", 1),
			"no column colour":   guard.Row("orders", "colour", 1),
			"no unique index":    guard.Row("orders", "amount", 1),
			"in turn":            guard.Row("orders", "no"),
			"NULL":               guard.Row("orders", "no", nil),
			"named twice":        guard.Row("orders", "no", 1, "no", 2),
			"no name of a table": guard.Row("orders; DROP TABLE orders", "no", 1),
			"no column no of":    guard.Row("orders", "no", "1").Versioned("no"),
			"64-bit integers":    guard.Row("orders", "no", "1").Stamped("email"),
			"another purpose":    guard.Row("orders", "no", "1").Stamped("no"),
		} {
			err := e.DoSQL(bg, "k", e.sells("1"), guard.Protects(row))
			wantIs(e.t, err, dbguard.ErrUnprotectable)
			if err == nil || !strings.Contains(err.Error(), says) {
				e.t.Errorf("err = %v, want %q", err, says)
			}
		}
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d orders", n)
		}
	})
}

// TestTwoFronts: gorm and SQL write in one transaction, and each judges what the other wrote.
func TestTwoFronts(t *testing.T) {
	eachSQL(t, func(e *env) {
		both := func(ctx context.Context, db *gorm.DB) error {
			tx, err := guard.SQL(ctx)
			wantNil(e.t, err)
			if err := e.sells("1")(ctx, tx); err != nil {
				return err
			}
			return db.Create(&Order{No: "2"}).Error
		}
		rows := guard.Protects(&Order{No: "1"}, guard.Row("orders", "no", "2"))
		wantNil(e.t, e.Do(bg, "pair", both, rows))
		wantIs(e.t, e.Do(bg, "pair", both, rows), guard.ErrDuplicate)
		wantIs(e.t, e.Do(bg, "pair", place("2"), rows), guard.ErrDuplicate)
	})
}

// TestApplyWithSQL: changes of structs need no driver of GORM's. What an operation writes in SQL can't be
// combined.
func TestApplyWithSQL(t *testing.T) {
	eachSQL(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 10})
		sale := func() error {
			return e.Apply(bg, "stock:1", guard.All(guard.Insert(&Order{No: "1"}), guard.Update(&Stock{ID: 1}, take)), guard.Combine(), guard.Wait(time.Minute))
		}
		wantNil(e.t, sale())
		wantIs(e.t, sale(), guard.ErrDuplicate)
		if got := e.stock(1); got.Left != 9 {
			e.t.Errorf("stock = %+v", got)
		}
		if err := e.DoSQL(bg, "order:2", e.sells("2"), guard.Combine(), guard.Wait(time.Minute)); err == nil || !strings.Contains(err.Error(), "cannot be combined") {
			e.t.Errorf("err = %v, want a word about Combine", err)
		}
	})
}

// TestOnceSQL: a repeat of a request gets the stored answer, and its effect is there once.
func TestOnceSQL(t *testing.T) {
	eachSQL(t, func(e *env) {
		sell := func() (guard.Answer[string], error) {
			return guard.OnceSQL(bg, e.Guard.Guard, requestOf(e.t.Name()), func(ctx context.Context, tx *sql.Tx) (string, error) {
				return "sold", e.sells("1")(ctx, tx)
			})
		}
		first, err := sell()
		wantNil(e.t, err)
		second, err := sell()
		wantNil(e.t, err)
		if first.Value != "sold" || first.Replayed || second.Value != "sold" || !second.Replayed {
			e.t.Errorf("answers are %+v and %+v", first, second)
		}
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d orders, want 1", n)
		}
	})
}

// TestSQLDBOnly: without the lock, only what the database refuses a second time is committed.
func TestSQLDBOnly(t *testing.T) {
	eachSQL(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 10})
		away, _ := e.dbOnly(guard.Config{})
		wantNil(e.t, away.DoSQL(bg, "order:1", e.sells("1"), orderRow("1")))
		left := e.db.Statement.Quote("left")
		wantNil(e.t, away.DoSQL(bg, "stock:1", func(ctx context.Context, _ *sql.Tx) error {
			return guard.UpdateRow(ctx, e.stockRow(1), 1, left+" = 1")
		}, guard.Protects(e.stockRow(1))))
		wantIs(e.t, away.DoSQL(bg, "stock:1", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE stocks SET "+left+" = 0 WHERE id = 1")
			return err
		}, guard.Protects(e.stockRow(1))), guard.ErrUnavailable)
		if got := e.stock(1); got.Left != 1 {
			e.t.Errorf("stock = %+v", got)
		}
	})
}

// TestExecByGorm: an INSERT that a program writes is judged in gorm's Exec and Raw, too.
func TestExecByGorm(t *testing.T) {
	each(t, func(e *env) {
		forms := map[string]func(tx *gorm.DB, no string) error{
			"Exec": func(tx *gorm.DB, no string) error {
				return tx.Exec("INSERT INTO orders (no, amount) VALUES (?, ?)", no, 1).Error
			},
			"literals": func(tx *gorm.DB, no string) error {
				return tx.Exec("INSERT INTO orders (no, amount) VALUES ('" + no + "', 1)").Error
			},
			"named": func(tx *gorm.DB, no string) error {
				return tx.Exec("INSERT INTO orders (no, amount) VALUES (@no, 1)", sql.Named("no", no)).Error
			},
		}
		if e.db.Name() != "mysql" {
			forms["Raw"] = func(tx *gorm.DB, no string) error {
				var id int64
				return tx.Raw("INSERT INTO orders (no, amount) VALUES (?, ?) RETURNING id", no, 1).Scan(&id).Error
			}
		}
		if e.db.Name() == "postgres" { // SQLite's error comes with the row
			forms["Row"] = func(tx *gorm.DB, no string) error {
				var id int64
				return tx.Raw("INSERT INTO orders (no, amount) VALUES (?, ?) RETURNING id", no, 1).Row().Scan(&id)
			}
		}
		for form, insert := range forms {
			for front, o := range map[string]func(no string) guard.Option{
				"model": func(no string) guard.Option { return guard.Protects(&Order{No: no}) },
				"row":   orderRow,
			} {
				e.t.Run(form+" "+front, func(t *testing.T) {
					no := form + "-" + front
					op := func(_ context.Context, tx *gorm.DB) error { return insert(tx, no) }
					wantNil(t, e.Do(bg, "order:"+no, op, o(no)))
					wantIs(t, e.Do(bg, "order:"+no, op, o(no)), guard.ErrDuplicate)
					err := e.Do(bg, "order:other", op, o("other"))
					if err == nil || errors.Is(err, guard.ErrDuplicate) {
						t.Errorf("err = %v, want the driver's", err)
					}
				})
			}
		}
		e.wantNoEvent()
	})
}

// TestSQLRoutineThatRenames: a routine or a trigger that gives another row the name of the protected
// one is refused by its index, and is no repeat.
func TestSQLRoutineThatRenames(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		wantNil(t, e.db.Exec("CREATE TABLE renamed (id BIGINT PRIMARY KEY, no VARCHAR(20) NOT NULL UNIQUE)").Error)
		wantNil(t, e.db.Exec("INSERT INTO renamed (id, no) VALUES (7, '7'), (8, '8')").Error)
		queries := map[string][]string{
			"mysql": {"CREATE PROCEDURE rename8() UPDATE renamed SET no = '7' WHERE id = 8", "CALL rename8()"},
			"postgres": {
				"CREATE FUNCTION rename8() RETURNS void LANGUAGE sql AS $$ UPDATE renamed SET no = '7' WHERE id = 8 $$",
				"CREATE FUNCTION rename8t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE renamed SET no = '7' WHERE id = 8; RETURN NULL; END $$",
				"CREATE TRIGGER t AFTER INSERT ON renamed FOR EACH ROW EXECUTE FUNCTION rename8t()",
				"SELECT rename8()", "DO $$ BEGIN UPDATE renamed SET no = '7' WHERE id = 8; END $$", "INSERT INTO renamed (id, no) VALUES (9, '9')",
			},
			"sqlite": {"CREATE TRIGGER t AFTER INSERT ON renamed BEGIN UPDATE renamed SET no = '7' WHERE id = 8; END", "INSERT INTO renamed (id, no) VALUES (9, '9')"},
		}
		for _, query := range queries[e.db.Name()] {
			if strings.HasPrefix(query, "CREATE") {
				wantNil(t, e.db.Exec(query).Error)
				continue
			}
			err := e.DoSQL(bg, "7", func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, query)
				return err
			}, guard.Protects(guard.Row("renamed", "no", "7")))
			if err == nil || errors.Is(err, guard.ErrDuplicate) {
				t.Errorf("%s: %s: err = %v, want one that is no repeat", e.db.Name(), query, err)
			}
		}
	})
}

// TestSQLValueOfAnotherType: an INSERT repeats a row whose name has other types in Go.
func TestSQLValueOfAnotherType(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		wantNil(t, e.db.Exec("CREATE TABLE days (id BIGINT PRIMARY KEY, day DATE NOT NULL UNIQUE)").Error)
		insert := func(id, day any, row *guard.TableRow) error {
			query := "INSERT INTO days (id, day) VALUES (?, ?)"
			if e.db.Name() == "postgres" {
				query = "INSERT INTO days (id, day) VALUES ($1, $2)"
			}
			return e.DoSQL(bg, "day", func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, query, id, day)
				return err
			}, guard.Protects(row))
		}
		day := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
		wantNil(t, insert(1, "2026-11-29", guard.Row("days", "id", 1)))
		wantIs(t, insert(1.0, "2026-11-30", guard.Row("days", "id", "1")), guard.ErrDuplicate)
		if e.db.Name() == "mysql" {
			wantIs(t, insert(2, day, guard.Row("days", "day", "2026-11-29")), guard.ErrDuplicate)
		}
	})
}
