package dbguard

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// firedOwnIndex reports whether an insert of n rows was refused by an index that
// protects each of them. It reports false if that is not known.
func (t *Tx) firedOwnIndex(c *Conflict, n int) bool {
	if len(c.suspects) == 0 {
		return false
	}
	indexes, _ := t.uniqueIndexes(c.suspects[0].row.table)
	fired, ok := t.firedIndex(c.err)
	if !ok || fired.table != "" && fired.table != catalogue.BareName(c.Table) {
		return false
	}
	i := slices.IndexFunc(indexes, func(i catalogue.Index) bool { return strings.EqualFold(i.Name, fired.index) })
	if i < 0 || fired.table == "" && t.factsOf(c.Table).Triggers && !t.onlyIndex(c.Table, fired.index) {
		return false // a trigger may have met an index of another table
	}
	for _, s := range c.suspects {
		if s.sure && catalogue.SameColumns(indexes[i].Columns, s.row.columns()) {
			n--
		}
	}
	return n == 0
}

// firedIndex is the index that refused an insert, as the error names it.
type firedIndex struct {
	table string // in lower case; "" if the error does not name it
	index string
}

// firedIndex returns the index that the error of a duplicate names. MySQL and MariaDB
// name it at the end of the text only; MySQL puts the table before it. Without strict
// mode a value is cut off that does not fit, so the row may be another one.
func (t *Tx) firedIndex(err error) (fired firedIndex, ok bool) {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		fired = firedIndex{strings.ToLower(stringField(err, "TableName", "Table")), stringField(err, "ConstraintName", "Constraint")}
		return fired, fired.table != "" && fired.index != ""
	}
	text, ok := strings.CutSuffix(e.Message, "'")
	if !ok || !t.conn.session.strict {
		return firedIndex{}, false
	}
	name := text[strings.LastIndexByte(text, '\'')+1:]
	table, index, ok := strings.Cut(name, ".")
	if !ok {
		return firedIndex{index: name}, name != ""
	}
	return firedIndex{strings.ToLower(table), index}, index != ""
}

// onlyIndex reports whether no other table of its schema is known to have an index of the
// name.
func (t *Tx) onlyIndex(table, index string) bool {
	if strings.EqualFold(index, "PRIMARY") {
		return false
	}
	ctx, cancel := t.judging()
	defer cancel()
	others, err := catalogue.OthersHaveIndex(t.quiet(ctx, t.db), table, index)
	return err == nil && !others
}

// stringField returns the first of the named fields that the error of a PostgreSQL
// driver has: pgx and pq name them differently.
func stringField(err error, names ...string) string {
	var e interface{ SQLState() string }
	if !errors.As(err, &e) {
		return ""
	}
	v := reflect.Indirect(reflect.ValueOf(e))
	if v.Kind() != reflect.Struct {
		return ""
	}
	for _, name := range names {
		if f := v.FieldByName(name); f.IsValid() && f.Kind() == reflect.String {
			return f.String()
		}
	}
	return ""
}
