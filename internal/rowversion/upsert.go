package rowversion

import (
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// withNext returns the assignments of an upsert to an existing row, with the next
// version. An upsert that does not change the row keeps its version, too: gorm's Save
// of a parent upserts the foreign keys of all children that are loaded.
//
// The version comes first, because MySQL executes assignments in their order.
func withNext(stmt *gorm.Statement, f *schema.Field, set clause.Set) clause.Set {
	next := updateVersion{modifier{f}}
	set = next.without(set)
	same, ok := unchanged(stmt, set)
	if !ok {
		return next.with(set, ofRow(f), 1)
	}
	ours := clause.Set{assign(f, clause.Expr{
		SQL:  "? + CASE WHEN " + same.SQL + " THEN 0 ELSE 1 END",
		Vars: append([]any{ofRow(f)}, same.Vars...),
	})}
	if stamp := stampOf(f.Schema); stamp != nil {
		vars := append(append([]any{}, same.Vars...), ofRow(stamp), RandomStamp())
		ours = append(ours, assign(stamp, clause.Expr{SQL: "CASE WHEN " + same.SQL + " THEN ? ELSE ? END", Vars: vars}))
	}
	return append(ours, set...)
}

// unchanged is the condition under which an upsert assigns the bytes that are there
// already. It reports false if a column gets another value than the one to be inserted.
func unchanged(stmt *gorm.Statement, set clause.Set) (all clause.Expr, ok bool) {
	for i, a := range set {
		value, ok := a.Value.(clause.Column)
		f := stmt.Schema.LookUpField(a.Column.Name)
		if !ok || value.Table != "excluded" || value.Name != a.Column.Name || f == nil || !comparesAsBytes(f) {
			return clause.Expr{}, false
		}
		if i > 0 {
			all.SQL += " AND "
		}
		all.SQL += sameBytes[stmt.Name()]
		inserted := value
		if stmt.Name() == "mysql" {
			inserted.Table = ""
		}
		all.Vars = append(all.Vars, ofRow(f), inserted)
	}
	return all, len(set) > 0
}

// sameBytes compares a column with the value to be inserted, by dialect. NULLs are
// equal; texts that are equal only by a collation are not.
var sameBytes = map[string]string{
	"mysql":    "CAST(? AS BINARY) <=> CAST(VALUES(?) AS BINARY)",
	"postgres": `?::text COLLATE "C" IS NOT DISTINCT FROM ?::text COLLATE "C"`,
	"sqlite":   "CAST(? AS BLOB) IS CAST(? AS BLOB)",
}

// comparesAsBytes reports whether equal values of a field are equal bytes. These are the
// kinds that keys have.
func comparesAsBytes(f *schema.Field) bool {
	switch t := f.IndirectFieldType; t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.String:
		return true
	case reflect.Slice, reflect.Array:
		return t.Elem().Kind() == reflect.Uint8 && !strings.EqualFold(string(f.DataType), "json")
	}
	return false
}
