package protected

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// Rows are the rows that the keys of a transaction protect. Finding one takes
// the same time however many there are. They are safe for concurrent use.
type Rows struct {
	sameTable func(a, b string) bool

	mu      sync.Mutex
	all     []*Row
	byValue map[uint64][]*Row // by bucket
	byModel map[any][]*Row    // by the pointer to the struct that is to be inserted
	shapes  []*Row            // one for each table and list of columns
	keys    []*keyRows
}

// keyRows are the rows of one key.
type keyRows struct {
	key     string
	shapes  []*Row          // one for each table and list of columns
	several bool            // there is more than one, apart from followed ones and claims
	named   map[string]bool // tables of the rows that Protect named
}

// NewRows returns no rows. sameTable reports whether two names are those of one table.
func NewRows(sameTable func(a, b string) bool) *Rows {
	return &Rows{
		sameTable: sameTable,
		byValue:   make(map[uint64][]*Row),
		byModel:   make(map[any][]*Row),
	}
}

// Add adds a row that knows its values.
func (p *Rows) Add(r *Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(r.Key).add(r)
	p.all = append(p.all, r)
	p.index(r)
	if r.Model != nil {
		p.byModel[r.Model] = append(p.byModel[r.Model], r)
	}
	if !slices.ContainsFunc(p.shapes, r.SameShape) {
		p.shapes = append(p.shapes, r)
	}
}

// of returns the rows of a key. The caller holds p.mu.
func (p *Rows) of(key string) *keyRows {
	for _, k := range p.keys {
		if k.key == key {
			return k
		}
	}
	k := &keyRows{key: key}
	p.keys = append(p.keys, k)
	return k
}

func (k *keyRows) add(r *Row) {
	if r.Named {
		if k.named == nil {
			k.named = make(map[string]bool)
		}
		k.named[r.Table] = true
	}
	if r.Followed || r.Kept {
		return
	}
	k.several = k.several || slices.ContainsFunc(k.shapes, func(other *Row) bool {
		if r.Of != 0 && other.Of != 0 && r.Of != other.Of {
			return false // to each call its key protects its own
		}
		// A row of this table that is named by other columns may be this row.
		return !strings.EqualFold(other.Table, r.Table) || other.SameShape(r) && other.Identity() != r.Identity()
	})
	if !slices.ContainsFunc(k.shapes, r.SameShape) {
		k.shapes = append(k.shapes, r)
	}
}

func (p *Rows) index(r *Row) {
	b := bucket(r.Table, r.Fields, r.Values)
	p.byValue[b] = append(p.byValue[b], r)
}

// change gives a row other values.
func (p *Rows) change(r *Row, values []any) {
	b := bucket(r.Table, r.Fields, r.Values)
	p.byValue[b] = slices.DeleteFunc(p.byValue[b], func(other *Row) bool { return other == r })
	r.setValues(values)
	p.index(r)
}

// Refresh checks again the models that a statement is about to insert, because hooks
// may have altered them since their rows were named. It returns the rows that have
// other values now.
func (p *Rows) Refresh(ctx context.Context, stmt *gorm.Statement) (altered []*Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	models.Each(stmt, func(model reflect.Value) {
		named := model.Addr().Interface()
		for _, r := range p.byModel[named] {
			r.Model = nil // once: the struct may be used for another row
			if values := r.valuesIn(ctx, model); !slices.EqualFunc(r.Values, values, sqlvalue.Equal) {
				p.change(r, values)
				altered = append(altered, r)
			}
		}
		delete(p.byModel, named)
	})
	return altered
}

// All returns the rows, in the order in which they were added.
func (p *Rows) All() []*Row {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// Several reports whether a key protects more than one row, apart from claims.
func (p *Rows) Several(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(key).several
}

// KeyOf returns the key that protects an equal row.
func (p *Rows) KeyOf(r *Row) (key string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.byValue[bucket(r.Table, r.Fields, r.Values)] {
		if k.Identity() == r.Identity() {
			return k.Key, true
		}
	}
	return "", false
}

// Has reports whether an equal row is there.
func (p *Rows) Has(r *Row) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.byValue[bucket(r.Table, r.Fields, r.Values)], func(k *Row) bool {
		return k.Identity() == r.Identity() && k.Named == r.Named && k.Model == r.Model
	})
}

// HasNamed reports whether Protect has named a row of the table under a key.
func (p *Rows) HasNamed(key, table string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(key).named[table]
}

// In returns the rows of a table.
func (p *Rows) In(table string) []*Row { return p.ofTable(p.All(), table) }

func (p *Rows) ofTable(rows []*Row, table string) (found []*Row) {
	if !slices.ContainsFunc(rows, func(r *Row) bool { return !p.sameTable(r.Table, table) }) {
		return slices.Clip(rows) // most often, and without an allocation
	}
	for _, r := range rows {
		if p.sameTable(r.Table, table) {
			found = append(found, r)
		}
	}
	return found
}

// Among returns the rows among the models of a statement.
func (p *Rows) Among(stmt *gorm.Statement) (rows []*Row) {
	seen := make(map[*Row]bool)
	p.Each(stmt, func(r *Row, _ func(column string) any) {
		if !seen[r] {
			seen[r] = true
			rows = append(rows, r)
		}
	})
	return rows
}

// Each calls f for every row of a statement that is among the rows, with its values.
func (p *Rows) Each(stmt *gorm.Statement, f func(r *Row, value func(column string) any)) {
	if stmt.Schema == nil {
		return
	}
	models.EachRow(stmt, func(value func(column string) any, _ reflect.Value) {
		for _, r := range p.Matching(stmt, value) {
			f(r, value)
		}
	})
}

// Matching returns the rows of a statement's table that have the values.
func (p *Rows) Matching(stmt *gorm.Statement, value func(column string) any) (rows []*Row) {
	for _, shape := range p.shapesIn(models.TableOf(stmt)) {
		p.mu.Lock()
		for _, r := range p.with(shape, value) {
			if r.Is(value) {
				rows = append(rows, r)
			}
		}
		p.mu.Unlock()
	}
	return rows
}

// Resolve finds out which of the rows' tables a table is, while the database still
// answers.
func (p *Rows) Resolve(table string) { p.shapesIn(table) }

// shapesIn returns the shapes of a table's rows.
func (p *Rows) shapesIn(table string) []*Row {
	p.mu.Lock()
	shapes := p.shapes
	p.mu.Unlock()
	return p.ofTable(shapes, table)
}

// with returns the rows of a shape that may have the given values.
func (p *Rows) with(shape *Row, value func(column string) any) []*Row {
	values := make([]any, len(shape.Fields))
	for i, f := range shape.Fields {
		values[i] = value(f.DBName)
	}
	return p.byValue[bucket(shape.Table, shape.Fields, values)]
}
