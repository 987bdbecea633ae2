package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

// judgedUpdate updates the stock of version 1 in SQL, and returns its conflict.
func (e *env) judgedUpdate(ctx context.Context, tx *sql.Tx) error {
	left := e.db.Statement.Quote("left")
	n, err := written(tx.ExecContext(ctx, "UPDATE stocks SET "+left+" = 5, version = version + 1 WHERE id = 1 AND version = 1"))
	return guard.Changed(ctx, e.stockRow(1), 1, n, err)
}

// judgedInsert inserts the order "a" in SQL unless it is there, and returns its conflict.
func (e *env) judgedInsert(ctx context.Context, tx *sql.Tx) error {
	query := map[string]string{
		"mysql":    "INSERT IGNORE INTO orders (no, amount) VALUES ('a', 1)",
		"postgres": "INSERT INTO orders (no, amount) VALUES ('a', 1) ON CONFLICT (no) DO NOTHING",
	}[e.db.Name()]
	n, err := written(tx.ExecContext(ctx, query))
	return guard.Inserted(ctx, guard.Row("orders", "no", "a"), n, err)
}

// nestedInsert inserts the order "a" behind a savepoint, to which it goes back.
func (e *env) nestedInsert(ctx context.Context, tx *sql.Tx) error {
	return insertNested(ctx, tx, "orders")
}

func insertNested(ctx context.Context, tx *sql.Tx, table string) error {
	for _, query := range []string{"SAVEPOINT a", "INSERT INTO " + table + " (no, amount) VALUES ('a', 1)"} {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			_, _ = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT a") // it is refused if nothing may be committed
			return err
		}
	}
	return nil
}

// TestOverlapSwallowedBehindSQL: SQL that has written no row, or rows of another table, has not
// written the row that the conflict was on.
func TestOverlapSwallowedBehindSQL(t *testing.T) {
	eachServer(t, func(e *env) {
		for name, tt := range map[string]struct {
			key   string
			row   *guard.TableRow
			first string // that is written before the lock is lost
			write func(*env, context.Context, *sql.Tx) error
		}{
			"changed":                {"stock:1", e.stockRow(1), "", (*env).judgedUpdate},
			"inserted":               {"order:a", guard.Row("orders", "no", "a"), "", (*env).judgedInsert},
			"changed behind a write": {"stock:1", e.stockRow(1), "INSERT INTO orders (no, amount) VALUES ('b', 1)", (*env).judgedUpdate},
			"nested behind a write":  {"order:a", guard.Row("orders", "no", "a"), "INSERT INTO stocks (id, version) VALUES (5, 1)", (*env).nestedInsert},
			"nested behind none":     {"order:a", guard.Row("orders", "no", "a"), "UPDATE stocks SET version = 2 WHERE id = 9", (*env).nestedInsert},
		} {
			e.t.Run(name, func(t *testing.T) {
				db := e.open() // nothing is known of its tables
				e := &env{Guard: guardtest.New(t, db), t: t, db: db, open: e.open}
				wantNil(t, e.db.Exec("DELETE FROM orders").Error)
				wantNil(t, e.db.Exec("DELETE FROM stocks").Error)
				e.create(&Stock{ID: 1, Left: 10})
				rival := guard.Insert(&Order{No: "a"}).Run
				if tt.key == "stock:1" {
					rival = guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left = 3; return nil }).Run
				}
				err := e.DoSQL(bg, tt.key, func(ctx context.Context, tx *sql.Tx) error {
					if tt.first != "" {
						_, err := tx.ExecContext(ctx, tt.first)
						wantNil(t, err)
					}
					e.loseTo(tt.key, rival)
					if tt.write(e, ctx, tx) == nil {
						t.Error("no conflict")
					}
					return nil
				}, guard.Protects(tt.row))
				wantIs(t, err, guard.ErrIntercepted)
			})
		}
	})
}

// TestBypassSwallowed: somebody who writes without the lock is reported, whatever the operation
// makes of its conflict.
func TestBypassSwallowed(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 10})
		left, other := e.db.Statement.Quote("left"), e.open()
		err := e.DoSQL(bg, "stock:1", func(ctx context.Context, tx *sql.Tx) error {
			wantNil(e.t, other.Exec("UPDATE stocks SET "+left+" = 3, version = version + 1 WHERE id = 1").Error)
			if e.judgedUpdate(ctx, tx) == nil {
				e.t.Error("no conflict")
			}
			return nil
		}, guard.Protects(e.stockRow(1)))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "stock:1")
	})
}

// TestOwnWriteSwallowed: a row that the operation itself has written, by a name of another table
// or by a function, is no other writer's.
func TestOwnWriteSwallowed(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.Postgres(t))
	wantNil(t, db.AutoMigrate(&Stock{}))
	for _, query := range []string{
		"CREATE TABLE orders (no TEXT UNIQUE, amount INT) PARTITION BY LIST (no)",
		"CREATE TABLE orders_a PARTITION OF orders FOR VALUES IN ('a')",
		"CREATE VIEW open_orders AS SELECT * FROM orders",
		"CREATE VIEW open_orders_a AS SELECT * FROM orders_a",
		"CREATE FUNCTION place(n TEXT) RETURNS int LANGUAGE sql AS 'INSERT INTO orders VALUES (n, 1) RETURNING 7'",
	} {
		wantNil(t, db.Exec(query).Error)
	}
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	for _, table := range []string{"orders", "orders_a"} {
		for name, query := range map[string]string{
			"table":                "INSERT INTO orders (no, amount) VALUES ('a', 1)",
			"partition":            "INSERT INTO orders_a (no, amount) VALUES ('a', 1)",
			"view":                 "INSERT INTO open_orders (no, amount) VALUES ('a', 1)",
			"view of a partition":  "INSERT INTO open_orders_a (no, amount) VALUES ('a', 1)",
			"function":             "INSERT INTO stocks (id, version) VALUES (place('a'), 1)",
			"function, and no row": "UPDATE stocks SET version = 2 WHERE id = 1 AND place('a') = 8",
			"common table":         "WITH made AS (INSERT INTO orders VALUES ('a', 1) RETURNING 7) DELETE FROM stocks",
		} {
			t.Run(table+" by a "+name, func(t *testing.T) {
				wantNil(t, db.Exec("DELETE FROM orders").Error)
				wantNil(t, db.Exec("DELETE FROM stocks").Error)
				e.create(&Stock{ID: 1})
				wantNil(t, e.DoSQL(bg, "order:a", func(ctx context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, query)
					wantNil(t, err)
					_, judged := errors.AsType[*dbguard.ConflictError](insertNested(ctx, tx, table))
					if !judged {
						t.Error("no conflict")
					}
					return nil
				}, guard.Protects(guard.Row(table, "no", "a"))))
				e.wantNoEvent()
			})
		}
	}
}
