package protected

import (
	"slices"
	"strings"
	"sync"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// Rows are the rows that the keys of a transaction protect. Finding one takes
// the same time however many there are. They are safe for concurrent use.
type Rows struct {
	sameTable func(a, b string) bool

	mu       sync.Mutex
	all      []*Row
	byValue  map[uint64][]*Row // by bucket
	byStruct map[any][]*Row    // by the pointer to the struct that is to be inserted
	shapes   []*Row            // one for each table and list of columns
	keys     []*keyRows
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
		byStruct:  make(map[any][]*Row),
	}
}

// Add adds a row that knows its values.
func (p *Rows) Add(r *Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(r.Key).add(r)
	p.all = append(p.all, r)
	p.index(r)
	if r.Struct != nil {
		p.byStruct[r.Struct] = append(p.byStruct[r.Struct], r)
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
	b := bucket(r.Table, r.Columns, r.Values)
	p.byValue[b] = append(p.byValue[b], r)
}

// change gives a row other values.
func (p *Rows) change(r *Row, values []any) {
	b := bucket(r.Table, r.Columns, r.Values)
	p.byValue[b] = slices.DeleteFunc(p.byValue[b], func(other *Row) bool { return other == r })
	r.setValues(values)
	p.index(r)
}

// Refresh checks again the structs that a statement is about to insert, because hooks
// may have altered them since their rows were named. It returns the rows that have
// other values now.
func (p *Rows) Refresh(w *statement.Write) (altered []*Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range w.Rows {
		if row.Struct == nil {
			continue
		}
		for _, r := range p.byStruct[row.Struct] {
			r.Struct = nil // once: the struct may be used for another row
			if values := r.named(row.Value); !slices.EqualFunc(r.Values, values, sqlvalue.Equal) {
				p.change(r, values)
				altered = append(altered, r)
			}
		}
		delete(p.byStruct, row.Struct)
	}
	return altered
}

// All returns the rows, in the order in which they were added.
func (p *Rows) All() []*Row {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// Any reports whether there is a row.
func (p *Rows) Any() bool { return len(p.All()) > 0 }

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
	for _, k := range p.byValue[bucket(r.Table, r.Columns, r.Values)] {
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
	return slices.ContainsFunc(p.byValue[bucket(r.Table, r.Columns, r.Values)], func(k *Row) bool {
		return k.Identity() == r.Identity() && k.Named == r.Named && k.Struct == r.Struct
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

// Among returns the rows among those of a statement.
func (p *Rows) Among(w *statement.Write) (rows []*Row) {
	seen := make(map[*Row]bool)
	p.Each(w, func(r *Row, _ statement.Value) {
		if !seen[r] {
			seen[r] = true
			rows = append(rows, r)
		}
	})
	return rows
}

// Each calls f for every row of a statement that is among the rows, with its values.
func (p *Rows) Each(w *statement.Write, f func(r *Row, value statement.Value)) {
	for _, row := range w.Rows {
		for _, r := range p.Matching(w.Table, row.Value) {
			f(r, row.Value)
		}
	}
}

// Matching returns the rows of a table that have the values.
func (p *Rows) Matching(table string, value statement.Value) (rows []*Row) {
	for _, shape := range p.shapesIn(table) {
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
func (p *Rows) with(shape *Row, value statement.Value) []*Row {
	return p.byValue[bucket(shape.Table, shape.Columns, shape.named(value))]
}
