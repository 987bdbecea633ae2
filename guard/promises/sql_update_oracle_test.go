package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// A meter is a row of the oracle's table, which is named by shop and no.
type meter struct {
	code    string // unique, too
	amount  int64
	version int64
}

// An update is an UPDATE of one meter by version, as a program may write it.
type update struct {
	form    string // row = guard.UpdateRow, changed = one of its own that guard.Changed judges
	name    ticket // by shop and no
	version int64
	set     string
	args    []any
	change  func(*meter)
}

// errOwn is the error of an operation that undoes itself.
var errOwn = errors.New("the program's own")

// TestSQLOracleOfUpdates updates rows by version, by statements in many spellings and behind others
// of the same transaction, and compares what the operations return with what is in the table:
// nothing is refused as stale but a version that the row has not, and nothing else is committed. An
// old version of the protected row is stale. BELAY_SQL_ORACLE is twice the number of
// operations on each database.
func TestSQLOracleOfUpdates(t *testing.T) {
	n := statements(t) / 2
	each(t, func(e *env) {
		o := newUpdateOracle(e)
		for range n {
			o.step()
		}
		e.wantNoEvent()
		t.Logf("%s: %d operations, %d updated, %d stale, %d other refusals, %d undone by the program, %d conflicts not told as stale: %v",
			e.db.Name(), n, o.done, o.stale, o.others, o.undone, o.missed(), o.misses)
		if o.misses[""] > 0 {
			t.Errorf("%d old versions of the protected row were not told as stale", o.misses[""])
		}
	})
}

// An updateOracle knows what is in the table.
type updateOracle struct {
	*oracle // draws values and spellings
	rows    map[string]meter

	stale, undone int
}

func newUpdateOracle(e *env) *updateOracle {
	text := map[string]string{
		"mysql": "VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "postgres": "VARCHAR(32)", "sqlite": "VARCHAR(32)",
	}[e.db.Name()]
	wantNil(e.t, e.db.Exec("DROP TABLE IF EXISTS meters").Error)
	wantNil(e.t, e.db.Exec("CREATE TABLE meters (shop BIGINT NOT NULL, no "+text+" NOT NULL, code "+text+" NOT NULL, amount BIGINT NOT NULL, version BIGINT NOT NULL, CONSTRAINT meters_no UNIQUE (shop, no), CONSTRAINT meters_code UNIQUE (code))").Error)
	e.t.Cleanup(func() { e.db.Exec("DROP TABLE meters") })
	return &updateOracle{
		oracle: &oracle{env: e, r: rand.New(rand.NewPCG(13, 17)), misses: map[string]int{}},
		rows:   map[string]meter{},
	}
}

// step runs one operation.
func (o *updateOracle) step() {
	o.t.Helper()
	u := o.draw()
	rows := maps.Clone(o.rows)
	before, prelude := o.prelude(u.name, rows)
	protected := u.name
	if o.r.IntN(6) == 0 {
		protected = o.oracle.draw()
	}
	undo := o.r.IntN(12) == 0
	err := o.DoSQL(bg, "meter", func(ctx context.Context, tx *sql.Tx) error {
		for _, query := range before {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				return err
			}
		}
		if err := o.send(ctx, tx, u); err != nil {
			return err
		}
		if undo {
			return errOwn
		}
		return nil
	}, guard.Protects(guard.Row("meters", "shop", protected.shop, "no", protected.no)))
	o.judge(u, rows, strings.Join(append(before, u.set), "; "), prelude, protected.name() == u.name.name(), undo, err)
}

// judge compares what an operation returned with what is known. rows are those that the update met.
func (o *updateOracle) judge(u update, rows map[string]meter, text, prelude string, protected, undo bool, err error) {
	o.t.Helper()
	m, there := rows[u.name.name()]
	fits := there && m.version == u.version
	taken := false
	if fits {
		u.change(&m)
		m.version++
		for name, other := range rows {
			taken = taken || name != u.name.name() && other.code == m.code
		}
	}
	isStale, isConflict := errors.Is(err, guard.ErrStale), false
	if _, ok := errors.AsType[*dbguard.ConflictError](err); ok {
		isConflict = true
	}
	fail := func(want string) {
		o.t.Helper()
		o.t.Fatalf("%s of version %d, where there is %+v, %v: %q %q: %v, want %s", u.form, u.version, m, there, text, u.args, err, want)
	}
	switch {
	case errors.Is(err, guard.ErrIntercepted):
		fail("no failure of the lock")
	case fits && (isStale || !taken && isConflict):
		fail("no conflict")
	case err == nil && (!fits || taken || undo):
		fail("an error")
	case err == nil:
		rows[u.name.name()] = m
		o.rows = rows
		o.done++
		o.compare(u.name, m)
	case fits && taken:
		o.others++
	case fits && !undo, fits && !errors.Is(err, errOwn):
		fail("no error but the program's own")
	case fits:
		o.undone++
	case isStale:
		o.stale++
	case !isConflict:
		fail("a conflict")
	default:
		o.misses[why(u, m, there, prelude, protected)]++
	}
}

// why returns why an update that met another version is told as a conflict, and not as stale.
func why(u update, m meter, there bool, prelude string, protected bool) string {
	switch {
	case !there:
		return "no row"
	case !protected:
		return "the key protects another row"
	case u.version > m.version:
		return "a version that the row has not had"
	case prelude == "raised":
		return "raised by the operation itself"
	}
	return ""
}

// compare reads a row that was updated.
func (o *updateOracle) compare(name ticket, want meter) {
	o.t.Helper()
	var got meter
	row := o.db.Raw("SELECT code, amount, version FROM meters WHERE shop = ? AND no = ?", name.shop, name.no).Row()
	wantNil(o.t, row.Scan(&got.code, &got.amount, &got.version))
	if got != want {
		o.t.Fatalf("the row is %+v, want %+v", got, want)
	}
	var others int
	wantNil(o.t, o.db.Raw("SELECT COUNT(*) FROM meters").Row().Scan(&others))
	if others != len(o.rows) {
		o.t.Fatalf("%d rows, want %d", others, len(o.rows))
	}
}

// draw draws an update of a row, which it may insert before.
func (o *updateOracle) draw() (u update) {
	u.name = o.oracle.draw()
	m, there := o.rows[u.name.name()]
	if !there && o.r.IntN(8) > 0 {
		m = meter{code: u.name.code + " " + u.name.name(), version: 1 + o.r.Int64N(2)}
		wantNil(o.t, o.db.Exec("INSERT INTO meters VALUES (?, ?, ?, ?, ?)", u.name.shop, u.name.no, m.code, m.amount, m.version).Error)
		o.rows[u.name.name()] = m
	}
	u.version = max(1, m.version-int64(o.pickNumber(0, 0, 0, 1, -1)))
	u.form = o.pick("row", "row", "changed")
	u.change = o.spellSet(&u, m)
	return u
}

func (o *updateOracle) pickNumber(of ...int) int { return of[o.r.IntN(len(of))] }

// spellSet draws what comes behind SET, and returns what it does.
func (o *updateOracle) spellSet(u *update, m meter) func(*meter) {
	var b strings.Builder
	s := spelled{form: "values"}
	by, code := 1+o.r.Int64N(9), m.code
	b.WriteString(o.pick("", "/* x = ? */ ", "\n") + o.quoted("amount", o.r.IntN(2) == 0) + o.pick(" = ", "=") + o.quoted("amount", o.r.IntN(2) == 0))
	b.WriteString(o.pick(" + ", "+\n"))
	if o.db.Name() == "postgres" {
		b.WriteString("CAST(")
	}
	o.value(&b, &s, by)
	if o.db.Name() == "postgres" {
		b.WriteString(" AS BIGINT)")
	}
	if o.r.IntN(3) == 0 {
		code = odd[o.r.IntN(len(odd))]
		b.WriteString(o.pick(", ", " ,", " -- it's\n, ") + o.quoted("code", o.r.IntN(2) == 0) + " = ")
		o.value(&b, &s, code)
	}
	b.WriteString(o.pick("", "", " /* end */", " -- end", " -- it's"))
	u.set, u.args = b.String(), s.args
	return func(m *meter) { m.amount, m.code = m.amount+by, code }
}

// prelude draws statements that come before the update in its transaction, and notes in rows what
// they do.
func (o *updateOracle) prelude(name ticket, rows map[string]meter) (before []string, kind string) {
	where := fmt.Sprintf(" WHERE shop = %d AND no = %s", name.shop, o.literal(name.no))
	m, there := rows[name.name()]
	switch kind = o.pick("none", "none", "none", "read", "unversioned", "raised", "deleted", "undone", "other"); kind {
	case "read":
		before = append(before, "SELECT COUNT(*) FROM meters"+where)
	case "unversioned":
		if there {
			m.amount = 7
			rows[name.name()] = m
		}
		before = append(before, "UPDATE meters SET amount = 7"+where)
	case "raised":
		if there {
			m.version++
			rows[name.name()] = m
		}
		before = append(before, "UPDATE meters SET version = version + 1"+where)
	case "deleted":
		delete(rows, name.name())
		before = append(before, "DELETE FROM meters"+where)
	case "undone":
		before = append(before, "SAVEPOINT s", "UPDATE meters SET version = version + 1"+where, "ROLLBACK TO SAVEPOINT s")
	case "other":
		before = append(before, "UPDATE meters SET amount = amount WHERE code = 'nowhere'")
	}
	return before, kind
}

// literal returns a text as every database reads it.
func (o *updateOracle) literal(text string) string {
	text = strings.ReplaceAll(text, "'", "''")
	if o.db.Name() == "mysql" {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return "'" + text + "'"
}

// send runs the update.
func (o *updateOracle) send(ctx context.Context, tx *sql.Tx, u update) error {
	row := guard.Row("meters", "shop", u.name.shop, "no", u.name.no)
	if u.form == "row" {
		return guard.UpdateRow(ctx, row, u.version, u.set, u.args...)
	}
	n, err := written(tx.ExecContext(ctx, "UPDATE meters SET "+u.set+"\n, version = version + 1 WHERE shop = "+fmt.Sprint(u.name.shop)+
		" AND no = "+o.literal(u.name.no)+fmt.Sprintf(" AND version = %d", u.version), u.args...))
	return guard.Changed(ctx, row, u.version, n, err)
}
