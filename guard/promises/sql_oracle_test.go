package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/belaygo/belay/guard"
)

// A ticket is a row of the oracle's table, with two unique indexes: on shop and no, which is
// protected, and on code.
type ticket struct {
	shop     int64
	no, code string
}

// A spelled is an INSERT of tickets, as a program may spell it.
type spelled struct {
	form  string
	query string
	args  []any
	rows  []ticket
}

// odd are values that a reader of SQL may misread.
var odd = []string{"a", "A", "a'b", "a''", "a b", "1", "01", "-1", "ü", "é", `a\b`, "--", "/*", "$1", "?", "(", ")", "a,b", "a-b", ";", "NULL", "=", ")=(", `"`, "`", "@x", ":x"}

// TestSQLOracle inserts rows by statements in many spellings, and compares what the operations
// return with what is in the table: an error is ErrDuplicate only if the protected row was there
// and the statement inserts it; and it is, unless its spelling is one that can't be read.
// BELAY_SQL_ORACLE is the number of statements on each database.
func TestSQLOracle(t *testing.T) {
	n := statements(t)
	each(t, func(e *env) {
		o := newOracle(e)
		for range n {
			o.step()
		}
		e.wantNoEvent()
		t.Logf("%s: %d statements, %d inserted, %d duplicates, %d other refusals, of the protected row %d: %v",
			e.db.Name(), n, o.done, o.duplicates, o.others, o.missed(), o.misses)
		for form := range o.misses {
			if form != "select" {
				e.t.Errorf("%d duplicates of the protected row were not told, by the spelling %q", o.misses[form], form)
			}
		}
	})
}

// statements returns how many statements an oracle tries on each database.
func statements(t *testing.T) int {
	t.Helper()
	text := os.Getenv("BELAY_SQL_ORACLE")
	if text == "" {
		return 800
	}
	n, err := strconv.Atoi(text)
	wantNil(t, err)
	return n
}

// An oracle knows what is in the table.
type oracle struct {
	*env
	r     *rand.Rand
	there map[string]bool // by shop and no
	codes map[string]bool

	done, duplicates, others int
	misses                   map[string]int
}

func newOracle(e *env) *oracle {
	text := map[string]string{
		"mysql": "VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "postgres": "VARCHAR(32)", "sqlite": "VARCHAR(32)",
	}[e.db.Name()]
	wantNil(e.t, e.db.Exec("DROP TABLE IF EXISTS tickets").Error)
	wantNil(e.t, e.db.Exec("CREATE TABLE tickets (shop BIGINT NOT NULL, no "+text+" NOT NULL, code "+text+" NOT NULL, CONSTRAINT tickets_no UNIQUE (shop, no), CONSTRAINT tickets_code UNIQUE (code))").Error)
	e.t.Cleanup(func() { e.db.Exec("DROP TABLE tickets") })
	return &oracle{env: e, r: rand.New(rand.NewPCG(7, 11)), there: map[string]bool{}, codes: map[string]bool{}, misses: map[string]int{}}
}

func (o *oracle) missed() int { return total(o.misses) }

func (t ticket) name() string { return fmt.Sprint(t.shop, "/", t.no) }

func (o *oracle) draw() ticket {
	return ticket{1 + o.r.Int64N(2), odd[o.r.IntN(len(odd))], odd[o.r.IntN(len(odd))] + strconv.Itoa(o.r.IntN(40))}
}

// step runs one operation.
func (o *oracle) step() {
	o.t.Helper()
	if len(o.there) > 40 {
		wantNil(o.t, o.db.Exec("DELETE FROM tickets").Error)
		o.there, o.codes = map[string]bool{}, map[string]bool{}
	}
	s := o.spell()
	protected := s.rows[o.r.IntN(len(s.rows))]
	if o.r.IntN(3) == 0 {
		protected = o.draw()
	}
	err := o.DoSQL(bg, "ticket", func(ctx context.Context, tx *sql.Tx) error {
		if !strings.Contains(s.query, "RETURNING") {
			_, err := tx.ExecContext(ctx, s.query, s.args...)
			return err
		}
		rows, err := tx.QueryContext(ctx, s.query, s.args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	}, guard.Protects(guard.Row("tickets", "shop", protected.shop, "no", protected.no)))
	o.judge(s, protected, err)
}

// judge compares what an operation returned with what is known.
func (o *oracle) judge(s spelled, protected ticket, err error) {
	o.t.Helper()
	there, codes := maps.Clone(o.there), maps.Clone(o.codes)
	conflicts, ofProtected := 0, 0
	for _, row := range s.rows {
		if there[row.name()] {
			conflicts++
			if row.name() == protected.name() && o.there[row.name()] {
				ofProtected++
			}
		}
		if codes[row.code] {
			conflicts++
		}
		there[row.name()], codes[row.code] = true, true
	}
	switch {
	case conflicts == 0 && err != nil:
		o.t.Fatalf("%q %v: %v, want no error", s.query, s.args, err)
	case conflicts > 0 && err == nil:
		o.t.Fatalf("%q %v: no error, though its rows are there", s.query, s.args)
	case err == nil:
		o.there, o.codes = there, codes
		o.done++
	case errors.Is(err, guard.ErrDuplicate):
		o.duplicates++
		if ofProtected == 0 {
			o.t.Fatalf("%q %v: %v, though it does not repeat %s, which is there: %v", s.query, s.args, err, protected.name(), o.there[protected.name()])
		}
	case ofProtected > 0 && ofProtected == conflicts:
		o.misses[s.form]++
	default:
		o.others++
	}
}

// spell draws an INSERT.
func (o *oracle) spell() (s spelled) {
	for range 1 + o.r.IntN(2)*o.r.IntN(3) {
		s.rows = append(s.rows, o.draw())
	}
	columns := []string{"shop", "no", "code"}
	o.r.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	var b strings.Builder
	b.WriteString(o.pick("", "-- name: Insert :exec\n", "/* ) VALUES ( */ ", " \n\t"))
	b.WriteString(o.pick("INSERT INTO ", "insert into ", "INSERT\nINTO /* x */ "))
	b.WriteString(o.quoted("tickets", o.r.IntN(2) == 0))
	b.WriteString(o.pick("(", " (", "\n( "))
	for i, column := range columns {
		if i > 0 {
			b.WriteString(o.pick(",", ", ", " /*,*/ , "))
		}
		b.WriteString(o.quoted(column, o.r.IntN(2) == 0))
	}
	b.WriteString(o.pick(")", " )", ") -- 'x\n"))
	s.form = o.pick("values", "values", "values", "select")
	for i, row := range s.rows {
		switch {
		case s.form == "values" && i == 0:
			b.WriteString(o.pick(" VALUES (", "values(", "\nVALUES\n("))
		case s.form == "values":
			b.WriteString(o.pick("), (", "),("))
		case i == 0:
			b.WriteString(" SELECT ")
		default:
			b.WriteString(" UNION ALL SELECT ")
		}
		for j, column := range columns {
			if j > 0 {
				b.WriteString(o.pick(",", ", ", "/* ' */,"))
			}
			o.value(&b, &s, map[string]any{"shop": row.shop, "no": row.no, "code": row.code}[column])
		}
	}
	if s.form == "values" {
		b.WriteString(")")
	}
	if o.db.Name() != "mysql" && o.r.IntN(4) == 0 {
		b.WriteString(o.pick(" RETURNING no", " RETURNING *"))
	}
	b.WriteString(o.pick("", "", ";", " -- end"))
	s.query = b.String()
	return s
}

func (o *oracle) pick(of ...string) string { return of[o.r.IntN(len(of))] }

func (o *oracle) quoted(name string, quote bool) string {
	if !quote {
		return name
	}
	return o.db.Statement.Quote(name)
}

// value writes a value, as an argument or as a literal.
func (o *oracle) value(b *strings.Builder, s *spelled, v any) {
	if s.form == "values" && o.r.IntN(2) == 0 {
		s.args = append(s.args, v)
		if o.db.Name() == "postgres" {
			fmt.Fprintf(b, "$%d", len(s.args))
			return
		}
		b.WriteString("?")
		return
	}
	text, isText := v.(string)
	if !isText {
		fmt.Fprint(b, v)
		return
	}
	doubled := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	switch {
	case o.db.Name() == "mysql":
		doubled = strings.ReplaceAll(doubled, `\`, `\\`)
		escaped := strings.NewReplacer(`\`, `\\`, "'", `\'`, `"`, `\"`).Replace(text)
		b.WriteString(o.pick(doubled, "'"+escaped+"'", `"`+escaped+`"`))
	case o.db.Name() == "postgres":
		b.WriteString(o.pick(doubled, "E'"+strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text)+"'"))
	default:
		b.WriteString(doubled)
	}
}
