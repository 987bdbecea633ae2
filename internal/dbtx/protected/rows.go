package protected

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/belaygo/belay/internal/dbtx/statement"
)

// Rows are the rows that the keys of a transaction protect. Finding one takes
// the same time however many there are. They are safe for concurrent use.
type Rows struct {
	tables Tables

	mu       sync.Mutex
	all      []*Row
	byValue  map[uint64][]*Row // by bucket; nil as long as there are few
	byStruct map[any][]*Row    // by the pointer to the struct that is to be inserted; nil as long as there are few
	shapes   []*Row            // one for each table and list of columns
	keys     []keyRows

	first struct { // room for the one row that most transactions have
		all, shapes [1]*Row
		keys        [1]keyRows
	}
}

// few is how many rows are at most compared one by one. That takes less time than to look for one
// of them by its hash.
const few = 8

// Tables knows the tables of a database.
type Tables interface {
	// SameTable reports whether two names are those of one table.
	SameTable(a, b string) bool
}

// keyRows are the rows of one key.
type keyRows struct {
	key     string
	shapes  []*Row          // one for each table and list of columns
	several bool            // there is more than one, apart from followed ones and claims
	named   map[string]bool // tables of the rows that Protect named
	first   [1]*Row         // room for one of the shapes
}

// Init is called once, before all others.
func (p *Rows) Init(tables Tables) {
	p.tables = tables
	p.all, p.shapes, p.keys = p.first.all[:0], p.first.shapes[:0], p.first.keys[:0]
}

// Add adds a row that knows its values.
func (p *Rows) Add(r *Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(r.Key).add(r)
	p.all = append(p.all, r)
	p.index(r)
	if !slices.ContainsFunc(p.shapes, r.SameShape) {
		p.shapes = append(p.shapes, r)
	}
}

// of returns the rows of a key. The caller holds p.mu.
func (p *Rows) of(key string) *keyRows {
	i := slices.IndexFunc(p.keys, func(k keyRows) bool { return k.key == key })
	if i < 0 {
		i = len(p.keys)
		p.keys = append(p.keys, keyRows{key: key})
	}
	return &p.keys[i]
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
	if k.shapes == nil {
		k.shapes = k.first[:0]
	}
	if !slices.ContainsFunc(k.shapes, r.SameShape) {
		k.shapes = append(k.shapes, r)
	}
}

// index makes the last row of all findable.
func (p *Rows) index(r *Row) {
	switch {
	case len(p.all) <= few:
		return
	case p.byValue == nil:
		p.byValue, p.byStruct = make(map[uint64][]*Row), make(map[any][]*Row)
		for _, r := range p.all {
			p.put(r)
		}
		return
	}
	p.put(r)
}

func (p *Rows) put(r *Row) {
	b := bucket(r.Table, r.Columns, r.Values)
	p.byValue[b] = append(p.byValue[b], r)
	if r.Struct != nil {
		p.byStruct[r.Struct] = append(p.byStruct[r.Struct], r)
	}
}

// change gives a row other values.
func (p *Rows) change(r *Row, values []any) {
	if p.byValue == nil {
		r.setValues(values)
		return
	}
	b := bucket(r.Table, r.Columns, r.Values)
	p.byValue[b] = slices.DeleteFunc(p.byValue[b], func(other *Row) bool { return other == r })
	r.setValues(values)
	p.put(r)
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
		for _, r := range p.madeOf(row.Struct) {
			if r.Struct != row.Struct {
				continue
			}
			r.Struct = nil // once: the struct may be used for another row
			if !r.isNamed(row.Value) {
				p.change(r, r.named(row.Value))
				altered = append(altered, r)
			}
		}
		delete(p.byStruct, row.Struct)
	}
	return altered
}

// madeOf returns the rows that inserting a struct may make.
func (p *Rows) madeOf(pointer any) []*Row {
	if p.byStruct == nil {
		return p.all
	}
	return p.byStruct[pointer]
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
	for _, k := range p.like(r) {
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
	return slices.ContainsFunc(p.like(r), func(k *Row) bool {
		return k.Identity() == r.Identity() && k.Named == r.Named && k.Struct == r.Struct
	})
}

// like returns the rows that may be equal to r.
func (p *Rows) like(r *Row) []*Row {
	if p.byValue == nil {
		return p.all
	}
	return p.byValue[bucket(r.Table, r.Columns, r.Values)]
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
	if !slices.ContainsFunc(rows, func(r *Row) bool { return !p.tables.SameTable(r.Table, table) }) {
		return slices.Clip(rows) // most often, and without an allocation
	}
	for _, r := range rows {
		if p.tables.SameTable(r.Table, table) {
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
		for r := range p.Matching(w.Table, row.Value) {
			f(r, row.Value)
		}
	}
}

// Matching returns the rows of a table that have the values.
func (p *Rows) Matching(table string, value statement.Value) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for _, shape := range p.shapesIn(table) {
			for _, r := range p.with(shape, value) {
				if p.is(r, shape, value) && !yield(r) {
					return
				}
			}
		}
	}
}

// is reports whether r is of a shape and has the given values.
func (p *Rows) is(r, shape *Row, value statement.Value) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.SameShape(shape) && r.Is(value)
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

// with returns the rows that may be of a shape and have the given values.
func (p *Rows) with(shape *Row, value statement.Value) []*Row {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byValue == nil {
		return p.all
	}
	return slices.Clone(p.byValue[bucket(shape.Table, shape.Columns, shape.named(value))])
}
