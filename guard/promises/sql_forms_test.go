package promises_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A coupon is a row of the table of TestSQLOracleOfForms.
type coupon struct {
	shop     int64
	no, code string
}

// A form is a statement that inserts coupons in one of the ways that a database has.
type form struct {
	verb, shape, suffix string
	odd                 []string // values

	query   string
	args    []any
	ignores bool // it leaves out what is there
	queries bool // it returns rows
}

// A former draws forms.
type former struct {
	r       *rand.Rand
	dialect string

	b     strings.Builder
	args  []any
	names bool     // they have names
	odd   []string // of the values of the form that is drawn
}

func (f *former) pick(of ...string) string { return of[f.r.IntN(len(of))] }

func (f *former) chance(n int) bool { return f.r.IntN(n) == 0 }

// space writes what may stand between two tokens.
func (f *former) space() {
	f.b.WriteString(f.pick(" ", " ", " ", "\n", " /* ), ( */ ", " -- '\n", "\t"))
}

// draw draws a form that inserts rows.
func (f *former) draw(rows []coupon) form {
	f.b.Reset()
	f.args, f.odd, f.names = nil, nil, f.dialect == "sqlite" && f.chance(6)
	s := form{verb: f.verb()}
	f.space()
	f.b.WriteString(f.table())
	columns := f.columns()
	s.shape = f.shape(len(rows))
	if s.shape != "set" {
		f.list(columns)
	}
	if columns == nil {
		columns = []string{"shop", "no", "code"}
	}
	f.body(s.shape, columns, rows)
	s.suffix = f.suffix(s.verb)
	f.b.WriteString(s.suffix + f.pick("", "", ";", " -- end", " /* end */"))
	s.ignores = strings.Contains(s.verb, "IGNORE") || strings.Contains(s.suffix, "NOTHING")
	s.queries = strings.Contains(s.suffix, "RETURNING")
	s.query, s.args, s.odd = f.b.String(), f.args, f.odd
	return s
}

// kind returns what is odd about a form, "" if nothing is.
func (s form) kind() string {
	verb := strings.ToUpper(s.verb)
	switch {
	case verb != "INSERT INTO" && verb != "INSERT":
		return verb
	case s.shape != "values":
		return s.shape
	case s.suffix != "" && !s.queries:
		return "upsert"
	case len(s.odd) > 0:
		return "values"
	}
	return ""
}

// shape draws how the rows are written.
func (f *former) shape(rows int) string {
	others := map[string]string{"mysql": "set", "postgres": "with", "sqlite": "select"}
	switch other := others[f.dialect]; {
	case f.chance(8):
		return "select"
	case f.chance(8) && (other != "set" || rows == 1):
		return other
	}
	return "values"
}

// verb writes the beginning, and returns it.
func (f *former) verb() string {
	verbs := []string{"INSERT INTO", "INSERT INTO", "INSERT INTO", "INSERT INTO", "insert into"}
	switch f.dialect {
	case "mysql":
		verbs = append(verbs, "INSERT", "INSERT IGNORE INTO", "REPLACE INTO", "INSERT HIGH_PRIORITY INTO", "INSERT /*! IGNORE */ INTO")
	case "sqlite":
		verbs = append(verbs, "INSERT OR ABORT INTO", "INSERT OR IGNORE INTO", "REPLACE INTO", "INSERT OR FAIL INTO")
	}
	verb := f.pick(verbs...)
	f.b.WriteString(verb)
	return verb
}

func (f *former) table() string {
	switch f.dialect {
	case "mysql":
		return f.pick("coupons", "coupons", "`coupons`")
	case "postgres":
		return f.pick("coupons", "coupons", `"coupons"`, "public.coupons", `COUPONS`, "coupons AS c")
	default:
		return f.pick("coupons", `"coupons"`, "main.coupons", "[coupons]", "`coupons`")
	}
}

// columns draws the columns that are named; nil if none are.
func (f *former) columns() []string {
	switch f.r.IntN(8) {
	case 0:
		return nil
	case 1:
		f.odd = append(f.odd, "the default shop")
		return []string{"no", "code"}
	}
	columns := []string{"shop", "no", "code"}
	f.r.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	return columns
}

// list writes the list of columns.
func (f *former) list(columns []string) {
	if columns == nil {
		f.b.WriteString(" ")
		f.odd = append(f.odd, "no columns")
		return
	}
	f.b.WriteString(" (")
	for i, column := range columns {
		if i > 0 {
			f.b.WriteString(",")
		}
		f.space()
		f.b.WriteString(f.pick(column, strings.ToUpper(column)))
	}
	f.b.WriteString(")")
}

// body writes the rows.
func (f *former) body(shape string, columns []string, rows []coupon) {
	switch shape {
	case "set":
		f.b.WriteString(" SET ")
		for i, column := range columns {
			if i > 0 {
				f.b.WriteString(", ")
			}
			f.b.WriteString(column + " = ")
			f.value(rows[0], column)
		}
	case "with":
		f.b.WriteString(" WITH x AS (SELECT 1) ")
		f.selects(columns, rows)
	case "select":
		f.b.WriteString(" ")
		f.selects(columns, rows)
	default:
		f.b.WriteString(" VALUES")
		if f.dialect == "mysql" && f.chance(10) { // a comment that no server executes, as it is of a later one
			f.b.WriteString(" (/*!999999 1, 'a', 'x'), ( */ ")
			f.odd = append(f.odd, "executable comment")
		} else {
			f.b.WriteString(" (")
		}
		for i, row := range rows {
			if i > 0 {
				f.b.WriteString("), (")
			}
			f.values(columns, row)
		}
		f.b.WriteString(")")
	}
}

func (f *former) selects(columns []string, rows []coupon) {
	for i, row := range rows {
		if i > 0 {
			f.b.WriteString(" UNION ALL ")
		}
		f.b.WriteString("SELECT ")
		f.values(columns, row)
	}
}

func (f *former) values(columns []string, row coupon) {
	for i, column := range columns {
		if i > 0 {
			f.b.WriteString(",")
			f.space()
		}
		f.value(row, column)
	}
}

// suffix draws what comes behind the rows.
func (f *former) suffix(verb string) string {
	none := []string{"", "", "", "", "", ""}
	switch {
	case f.dialect == "mysql" && strings.HasPrefix(verb, "INSERT INTO"):
		return f.pick(append(none, " ON DUPLICATE KEY UPDATE code = code", " ON DUPLICATE KEY UPDATE code = 'a1'", " ON DUPLICATE KEY UPDATE no = 'a'")...)
	case f.dialect == "mysql":
		return ""
	case strings.EqualFold(verb, "INSERT INTO") && f.chance(3):
		return f.pick(" ON CONFLICT DO NOTHING", " ON CONFLICT (shop, no) DO NOTHING", " ON CONFLICT (code) DO NOTHING",
			" ON CONFLICT (code) DO UPDATE SET no = 'a'", " ON CONFLICT (shop, no) DO UPDATE SET code = 'a1'")
	}
	return f.pick(append(none, " RETURNING no", " RETURNING *, shop + 1")...)
}

// value writes a value of a row, in one of its spellings.
func (f *former) value(row coupon, column string) {
	switch {
	case column == "shop" && f.chance(3):
		f.oddNumber(row.shop)
	case column == "shop":
		if f.chance(2) {
			f.arg(row.shop)
			return
		}
		fmt.Fprint(&f.b, row.shop)
	case f.chance(3):
		f.oddText(map[string]string{"no": row.no, "code": row.code}[column])
	case f.chance(2):
		f.arg(map[string]string{"no": row.no, "code": row.code}[column])
	default:
		f.b.WriteString(f.literal(map[string]string{"no": row.no, "code": row.code}[column]))
	}
}

func (f *former) arg(v any) {
	if f.names {
		name := fmt.Sprintf("v%d", len(f.args))
		f.args = append(f.args, sql.Named(name, v))
		f.b.WriteString(f.pick(":", "@", "$") + name)
		return
	}
	f.args = append(f.args, v)
	switch f.dialect {
	case "postgres":
		fmt.Fprintf(&f.b, "$%d", len(f.args))
	case "sqlite":
		f.b.WriteString(f.pick("?", "?"+strconv.Itoa(len(f.args))))
	default:
		f.b.WriteString("?")
	}
}

func (f *former) literal(text string) string {
	text = strings.ReplaceAll(text, "'", "''")
	if f.dialect == "mysql" {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return "'" + text + "'"
}

// oddNumber writes a number as few programs do.
func (f *former) oddNumber(n int64) {
	args := map[string]any{
		"an int32": int32(n), "a float": float64(n), "a text": strconv.FormatInt(n, 10), "bytes": []byte(strconv.FormatInt(n, 10)),
		"a valuer": sql.NullInt64{Int64: n, Valid: true}, "a bool": n == 1,
	}
	ways := map[string]string{
		"quoted": fmt.Sprintf("'%d'", n), "padded": fmt.Sprintf("'0%d'", n), "a fraction": fmt.Sprintf("%d.0", n), "an exponent": fmt.Sprintf("%de0", n),
		"signed": fmt.Sprintf("+%d", n), "negated": fmt.Sprintf("- -%d", n), "in brackets": fmt.Sprintf("(%d)", n), "a sum": fmt.Sprintf("%d+1-1", n),
		"cast": fmt.Sprintf("CAST(%d AS DECIMAL)", n), "hex": fmt.Sprintf("0x%d", n), "zeros": fmt.Sprintf("00%d", n), "rounded": fmt.Sprintf("%d.4", n),
		"a call": fmt.Sprintf("ABS(-%d)", n), "a subquery": fmt.Sprintf("(SELECT %d)", n), "true": "TRUE", "the default": "DEFAULT", "no value": "NULL",
		"minus": fmt.Sprintf("-%d", n), "a case": fmt.Sprintf("CASE WHEN 1 = 1 THEN %d END", n),
	}
	f.write(args, ways)
}

// oddText writes a text as few programs do.
func (f *former) oddText(text string) {
	args := map[string]any{
		"bytes": []byte(text), "a valuer": sql.NullString{String: text, Valid: true}, "a pointer": &text, "with a space": text + " ",
		"upper": strings.ToUpper(text), "a number": int64(1), "a fraction": 1.0, "a bool": true,
	}
	half := len(text) / 2
	l := f.literal(text)
	ways := map[string]string{
		"in brackets": "(" + l + ")", "concatenated": "CONCAT(" + f.literal(text[:half]) + ", " + f.literal(text[half:]) + ")",
		"pipes": f.literal(text[:half]) + " || " + f.literal(text[half:]), "lower": "LOWER(" + l + ")", "with a space": f.literal(text + " "),
		"national": "N" + l, "cast": "CAST(" + l + " AS CHAR(9))", "a subquery": "(SELECT " + l + ")", "adjacent": l + "\n'x'", "adjacent nothing": l + " /* x */ ''",
		"hex": fmt.Sprintf("X'%x'", text), "a number": "1", "a padded number": "01", "trimmed": "TRIM(' a ')", "a column": "code", "a name": `"a"`,
		"no value": "NULL", "a case": "CASE WHEN 1 = 1 THEN " + l + " END",
	}
	switch f.dialect {
	case "mysql":
		ways["introduced"], ways["collated"] = "_utf8mb4"+l, l+" COLLATE utf8mb4_bin"
		ways["escapes"], ways["0x"] = `'\a'`, fmt.Sprintf("0x%x", text)
		ways["commented"] = l + " /*!40000 'x' */"
	case "postgres":
		ways["escapes"], ways["unicode"], ways["dollars"] = `E'\x61'`, `U&'\0061'`, "$x$"+text+"$x$"
		ways["cast"], ways["nested comment"] = l+"::text", "/* /* 'a', */ */"+l
		ways["continued"] = l + " -- \n 'x'"
	}
	f.write(args, ways)
}

// write writes one of some values.
func (f *former) write(args map[string]any, ways map[string]string) {
	names := append(sortedKeys(args), sortedKeys(ways)...)
	n := f.r.IntN(len(names))
	f.odd = append(f.odd, names[n])
	if n < len(args) {
		f.arg(args[names[n]])
		return
	}
	f.b.WriteString(ways[names[n]])
}
