package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/guard"
)

// TestSQLOracleOfForms inserts rows in the ways that each database has, with values of all kinds,
// behind other statements of the same transaction, into columns that distinguish case and into such
// that do not. What the operations return is compared with what the database itself makes of the
// statement: an error is ErrDuplicate only if the statement inserts the protected row, and that was
// committed before; it is ErrDuplicate if that is the only row in its way, unless a part of the
// statement is odd; and what the database takes is committed. BELAY_SQL_ORACLE is twice the number
// of statements on each database.
func TestSQLOracleOfForms(t *testing.T) {
	n := statements(t) / 2
	each(t, func(e *env) {
		for _, text := range texts(e.db.Name()) {
			o := newFormOracle(e, text)
			for range n / 2 {
				o.step()
			}
			t.Logf("%s, %s: %d statements, %d done, %d duplicates, %d other refusals, of the protected row %d: %v",
				e.db.Name(), text, n/2, o.done, o.duplicates, o.others, total(o.misses), o.misses)
			if o.misses[""] > 0 && !strings.HasPrefix(text, "CHAR") { // which pads what the error names
				e.t.Errorf("%d duplicates of the protected row were not told, though nothing is odd about them", o.misses[""])
			}
		}
		e.wantNoEvent()
	})
}

// texts returns two types of texts, as CREATE TABLE has them.
func texts(dialect string) []string {
	switch dialect {
	case "mysql":
		return []string{"VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"}
	case "sqlite":
		return []string{"VARCHAR(32)", "VARCHAR(32) COLLATE NOCASE"}
	}
	return []string{"VARCHAR(32)", "CHAR(12)"}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// A formOracle runs each statement as an operation and without a guard.
type formOracle struct {
	*env
	r    *rand.Rand
	f    *former
	pool *sql.DB

	done, duplicates, others int
	misses                   map[string]int
}

func newFormOracle(e *env, text string) *formOracle {
	pool, err := e.db.DB()
	wantNil(e.t, err)
	wantNil(e.t, e.db.Exec("DROP TABLE IF EXISTS coupons").Error)
	wantNil(e.t, e.db.Exec("CREATE TABLE coupons (shop BIGINT NOT NULL DEFAULT 1, no "+text+" NOT NULL, code "+text+" NOT NULL, CONSTRAINT coupons_no UNIQUE (shop, no), CONSTRAINT coupons_code UNIQUE (code))").Error)
	e.t.Cleanup(func() { e.db.Exec("DROP TABLE coupons") })
	pool.SetMaxIdleConns(0) // connections of pgx know the table that is gone
	pool.SetMaxIdleConns(4)
	r := rand.New(rand.NewPCG(19, 23))
	return &formOracle{env: e, r: r, f: &former{r: r, dialect: e.db.Name()}, pool: pool, misses: map[string]int{}}
}

// row draws a row. Few values meet often.
func (o *formOracle) row() coupon {
	no := []string{"a", "A", "b", "1", "01", "a ", "a'b", `a\b`, "a-b", "ä", "x)", "1.0"}[o.r.IntN(12)]
	return coupon{1 + o.r.Int64N(2), no, []string{"a", "b", "c"}[o.r.IntN(3)] + fmt.Sprint(o.r.IntN(12))}
}

// step runs one statement.
func (o *formOracle) step() {
	o.t.Helper()
	if o.number("SELECT COUNT(*) FROM coupons") > 14 {
		wantNil(o.t, o.db.Exec("DELETE FROM coupons").Error)
	}
	rows := []coupon{o.row()}
	for o.f.chance(3) {
		rows = append(rows, o.row())
	}
	a := attempt{form: o.f.draw(rows), protected: rows[o.r.IntN(len(rows))]}
	a.named = a.ignores && len(rows) == 1
	if o.f.chance(3) {
		a.protected, a.named = o.row(), false
	}
	o.prelude(&a)
	is := o.try(a)
	o.judge(a, is, o.operate(a))
}

// An attempt is one operation.
type attempt struct {
	form

	protected coupon
	before    []string // statements of the same transaction
	own       bool     // they write the protected row
	named     bool     // guard.Inserted judges the statement
}

func (a attempt) String() string {
	return fmt.Sprintf("%q, then %q %q (%s), which protects %+v", a.before, a.query, a.args, a.kind(), a.protected)
}

func (a attempt) row() *guard.TableRow {
	return guard.Row("coupons", "shop", a.protected.shop, "no", a.protected.no)
}

// where is the condition that the protected row meets.
func (o *formOracle) where(a attempt) string {
	return fmt.Sprintf(" WHERE shop = %d AND no = %s", a.protected.shop, o.f.literal(a.protected.no))
}

// prelude draws what comes before in the same transaction.
func (o *formOracle) prelude(a *attempt) {
	where, n := o.where(*a), o.r.IntN(1_000_000)
	remove := "DELETE FROM coupons" + where
	insert := fmt.Sprintf("INSERT INTO coupons (shop, no, code) VALUES (%d, %s, 'own %d')", a.protected.shop, o.f.literal(a.protected.no), n)
	switch o.r.IntN(12) {
	case 0:
		a.before = []string{"SELECT 1 FROM coupons" + where}
	case 1:
		a.before, a.own = []string{remove}, true
	case 2:
		a.before, a.own = []string{remove, insert}, true
	case 3:
		a.before = []string{"SAVEPOINT s", remove, insert, "ROLLBACK TO SAVEPOINT s"}
	case 4:
		a.before = []string{fmt.Sprintf("UPDATE coupons SET code = 'upd %d'", n) + where}
	}
}

// A truth is what the database makes of a statement.
type truth struct {
	there   bool     // the protected row was there before
	err     error    // of the statement
	wrote   int64    // rows
	rows    []string // that are there after it
	fails   bool     // it fails on an empty table, too
	inserts bool     // it inserts the protected row into an empty table
	alone   bool     // nothing but the protected row is in its way
}

// try runs a statement without a guard.
func (o *formOracle) try(a attempt) (is truth) {
	o.t.Helper()
	is.there = o.number("SELECT COUNT(*) FROM coupons"+o.where(a)) > 0
	o.undone(a.before, func(tx *sql.Tx) {
		if is.wrote, is.err = sendForm(bg, tx, a.form); is.err == nil {
			is.rows = o.contents(tx)
		}
	})
	if is.err == nil {
		return is
	}
	o.undone([]string{"DELETE FROM coupons"}, func(tx *sql.Tx) {
		_, err := sendForm(bg, tx, a.form)
		if is.fails = err != nil; !is.fails {
			var n int
			wantNil(o.t, tx.QueryRow("SELECT COUNT(*) FROM coupons"+o.where(a)).Scan(&n))
			is.inserts = n > 0
		}
	})
	o.undone([]string{"DELETE FROM coupons" + o.where(a)}, func(tx *sql.Tx) {
		_, err := sendForm(bg, tx, a.form)
		is.alone = err == nil
	})
	return is
}

// undone runs f in a transaction, behind other statements, and rolls that back.
func (o *formOracle) undone(before []string, f func(*sql.Tx)) {
	o.t.Helper()
	tx, err := o.pool.BeginTx(bg, nil)
	wantNil(o.t, err)
	defer func() { _ = tx.Rollback() }()
	for _, query := range before {
		_, err := tx.Exec(query)
		wantNil(o.t, err)
	}
	f(tx)
}

// sendForm runs a statement, and returns how many rows it wrote.
func sendForm(ctx context.Context, tx *sql.Tx, s form) (int64, error) {
	if !s.queries {
		return written(tx.ExecContext(ctx, s.query, s.args...))
	}
	rows, err := tx.QueryContext(ctx, s.query, s.args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var n int64
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// operate runs a statement as an operation.
func (o *formOracle) operate(a attempt) error {
	return o.DoSQL(bg, "coupon", func(ctx context.Context, tx *sql.Tx) error {
		for _, query := range a.before {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				return fmt.Errorf("before: %w", err)
			}
		}
		n, err := sendForm(ctx, tx, a.form)
		if a.named {
			return guard.Inserted(ctx, a.row(), n, err)
		}
		return err
	}, guard.Protects(a.row()))
}

// judge compares what an operation returned with what the database makes of its statement.
func (o *formOracle) judge(a attempt, is truth, err error) {
	o.t.Helper()
	duplicate := errors.Is(err, guard.ErrDuplicate)
	left := is.err == nil && is.wrote == 0 && a.named // out, and Inserted was told
	switch {
	case duplicate && (!is.there || !left && is.err == nil || is.err != nil && !is.fails && !is.inserts):
		o.t.Fatalf("%v: %v, which is false: %+v", a, err, is)
	case (is.err != nil || left) && err == nil:
		o.t.Fatalf("%v: no error, want one: %+v", a, is)
	case is.err == nil && !left && err != nil:
		o.t.Fatalf("%v: %v, want no error: %+v", a, err, is)
	case err == nil:
		o.done++
		if got := o.contents(o.pool); !slices.Equal(got, is.rows) {
			o.t.Fatalf("%v: there is %q, want %q", a, got, is.rows)
		}
	case duplicate:
		o.duplicates++
	case is.there && !a.own && (left || is.inserts && is.alone):
		o.misses[a.kind()]++
	default:
		o.others++
	}
}

// contents returns all coupons.
func (o *formOracle) contents(in interface {
	Query(string, ...any) (*sql.Rows, error)
}) (all []string) {
	o.t.Helper()
	rows, err := in.Query("SELECT shop, no, code FROM coupons")
	wantNil(o.t, err)
	defer rows.Close()
	for rows.Next() {
		var shop, no, code string
		wantNil(o.t, rows.Scan(&shop, &no, &code))
		all = append(all, fmt.Sprintf("%s %q %q", shop, no, code))
	}
	wantNil(o.t, rows.Err())
	slices.Sort(all)
	return all
}

func (o *formOracle) number(query string) (n int) {
	o.t.Helper()
	wantNil(o.t, o.pool.QueryRow(query).Scan(&n))
	return n
}
