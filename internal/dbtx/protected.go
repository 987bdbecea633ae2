package dbtx

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// protectedRows are the rows that a transaction's key protects. Finding one takes
// the same time however many there are.
type protectedRows struct {
	all     []*protectedRow
	byName  map[string][]*protectedRow // by identity
	byValue map[string][]*protectedRow // by bucket
	byModel map[any][]*protectedRow    // by the pointer to the struct that is to be inserted
	shapes  []*protectedRow            // one for each table and list of columns
	tables  map[string]bool            // of the rows that Protect has named
	several bool                       // the key protects more than one row, apart from followed ones
}

// add adds a row that knows its values.
func (p *protectedRows) add(r *protectedRow) {
	if p.byName == nil {
		p.byName = make(map[string][]*protectedRow)
		p.byValue = make(map[string][]*protectedRow)
		p.byModel = make(map[any][]*protectedRow)
		p.tables = make(map[string]bool)
	}
	p.several = p.several || !r.followed && slices.ContainsFunc(p.shapes, func(k *protectedRow) bool {
		// A row of the same table that other columns name may be the same.
		return !k.followed && (!strings.EqualFold(k.table, r.table) || k.sameShape(r) && k.identity() != r.identity())
	})
	p.all = append(p.all, r)
	p.index(r)
	if r.model != nil {
		p.byModel[r.model] = append(p.byModel[r.model], r)
	}
	if r.named {
		p.tables[r.table] = true
	}
	if !slices.ContainsFunc(p.shapes, r.sameShape) {
		p.shapes = append(p.shapes, r)
	}
}

func (p *protectedRows) index(r *protectedRow) {
	p.byName[r.identity()] = append(p.byName[r.identity()], r)
	b := bucket(r.table, r.fields, r.values)
	p.byValue[b] = append(p.byValue[b], r)
}

// change gives a row other values.
func (p *protectedRows) change(r *protectedRow, values []any) {
	is := func(other *protectedRow) bool { return other == r }
	b := bucket(r.table, r.fields, r.values)
	p.byName[r.identity()] = slices.DeleteFunc(p.byName[r.identity()], is)
	p.byValue[b] = slices.DeleteFunc(p.byValue[b], is)
	r.setValues(values)
	p.index(r)
}

// has reports whether an equal row is there.
func (p *protectedRows) has(r *protectedRow) bool {
	return slices.ContainsFunc(p.byName[r.identity()], func(k *protectedRow) bool {
		return k.named == r.named && k.model == r.model
	})
}

// with returns the rows of a shape that may have the given values.
func (p *protectedRows) with(shape *protectedRow, value func(column string) any) []*protectedRow {
	values := make([]any, len(shape.fields))
	for i, f := range shape.fields {
		values[i] = value(f.DBName)
	}
	return p.byValue[bucket(shape.table, shape.fields, values)]
}

// sameShape reports whether two rows have one table and are named by the same
// columns.
func (r *protectedRow) sameShape(k *protectedRow) bool {
	return r.table == k.table && slices.EqualFunc(r.fields, k.fields, func(a, b *schema.Field) bool { return a.DBName == b.DBName })
}

// bucket is the same for all values that equal takes for the same.
func bucket(table string, fields []*schema.Field, values []any) string {
	var b strings.Builder
	b.WriteString(table)
	for i, f := range fields {
		fmt.Fprintf(&b, "\x00%s=", f.DBName)
		switch v := sqlvalue.Indirect(values[i]).(type) {
		case time.Time: // equal to the same instant elsewhere, and to its day
		case fmt.Stringer, []byte:
			fmt.Fprint(&b, v)
		default:
			if k := reflect.ValueOf(v).Kind(); k != reflect.Struct && k != reflect.Pointer && k != reflect.Map && k != reflect.Interface {
				fmt.Fprint(&b, v)
			}
		}
	}
	return b.String()
}
