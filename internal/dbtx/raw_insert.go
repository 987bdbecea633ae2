package dbtx

import (
	"database/sql/driver"
	"reflect"
	"strconv"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// describe describes an INSERT with a list of values. It returns nil for any other statement,
// and for one that can't be read.
func (t *Tx) describe(r *pinned.Raw) *statement.Write {
	in, ok := sqltext.ParseInsert(r.Query, t.conn.Session.Grammar)
	if !ok {
		return nil
	}
	args := withoutOptions(r.Args)
	n := len(in.Rows)
	w := &statement.Write{How: statement.Plain, Table: in.Table, Model: listed{}, Given: n, Values: int64(n)}
	texts := t.namedByText(in.Table)
	for _, terms := range in.Rows {
		given := valuesOf(in, terms, args)
		w.Rows = append(w.Rows, statement.Row{Value: func(column string) any {
			v := given(column)
			if texts[column] {
				v = asText(v)
			}
			return v
		}})
	}
	return w
}

// namedByText returns the columns in which protected rows of a table are named by a text.
func (t *Tx) namedByText(table string) map[string]bool {
	texts := make(map[string]bool)
	for _, r := range t.rows.In(table) {
		for i, v := range r.Values {
			if _, isText := sqlvalue.Text(v); isText && t.holdsTexts(r.Table, r.Columns[i]) {
				texts[r.Columns[i]] = true
			}
		}
	}
	return texts
}

// holdsTexts reports whether a column holds texts, or may.
func (t *Tx) holdsTexts(table, name string) bool {
	c, err := t.reader.Column(table, name)
	return err != nil || c.KeepsTexts(t.dialect.Name) || t.dialect.Name != "sqlite" && c.Collation != ""
}

// asText returns a value of an INSERT as a column of texts stores it, nil if that is not known. A
// database would compare a number with a text as numbers, and so 1 with the row "01". A fraction or a
// bool is another text in each database.
func asText(v any) any {
	if _, isText := sqlvalue.Text(v); isText {
		return v
	}
	switch v := sqlvalue.Indirect(v).(type) {
	case []byte:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return nil
}

// valuesOf returns the values of a row of an INSERT. One that is not known is nil.
func valuesOf(in sqltext.Insert, terms []sqltext.Term, args []driver.NamedValue) statement.Value {
	return func(column string) any {
		for i, name := range in.Columns {
			if strings.EqualFold(name, column) {
				return valueOf(terms[i], args, in.Marks)
			}
		}
		return nil
	}
}

func valueOf(t sqltext.Term, args []driver.NamedValue, marks int) any {
	switch {
	case t.Unknown:
		return nil
	case t.Name != "":
		for _, a := range args {
			if a.Name == t.Name {
				return a.Value
			}
		}
		return nil
	case t.Arg == 0:
		return t.Literal
	case marks != len(args) || args[t.Arg-1].Name != "":
		return nil // they are not what the text marks
	}
	return args[t.Arg-1].Value
}

// withoutOptions returns the arguments without those of pgx that are none, but options. They
// come first.
func withoutOptions(args []driver.NamedValue) []driver.NamedValue {
	for len(args) > 0 {
		t := reflect.TypeOf(args[0].Value)
		if t == nil || !strings.HasSuffix(t.PkgPath(), "github.com/jackc/pgx/v5") {
			return args
		}
		args = args[1:]
	}
	return nil
}

// listed is the model of rows whose values an INSERT lists.
type listed struct{}

// Table implements statement.Model.
func (listed) Table() string { return "" }

// Primary implements statement.Model.
func (listed) Primary() []string { return nil }

// Version implements statement.Model.
func (listed) Version() string { return "" }

// Stamp implements statement.Model.
func (listed) Stamp() string { return "" }

// Fills implements statement.Model: a value that is not known is no value of a protected row.
func (listed) Fills(string, any) bool { return false }

// Declares implements statement.Model.
func (listed) Declares(statement.Model) bool { return false }
