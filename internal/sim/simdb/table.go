package simdb

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Kinds of columns. A text compares by its bytes, whatever its collation.
const (
	kindText = iota
	kindInt
	kindFloat
	kindBool
	kindTime
)

type column struct {
	name      string
	kind      int
	notNull   bool
	auto      bool
	byDefault *expr
}

// A table keeps its rows in the order of its primary key, in the first index.
type table struct {
	name    string
	columns []column
	indexes []*index
	auto    int64 // the last number that was given
}

// An index is unique. The first one is the primary key.
type index struct {
	name     string
	table    *table
	columns  []int
	records  []*record // in order
	supremum *record   // stands for the end, where gaps are locked
}

// A record is an entry of an index. A secondary index may have several with one key,
// of which at most one is not deleted.
type record struct {
	index   *index
	key     []any
	row     *row
	deleted bool // marked: nothing here purges it
	by      *tx  // the last to write it: while it runs, it has an implicit lock
	locks   []*lock
}

// A row is all its versions, the oldest first.
type row struct {
	table    *table
	versions []version
	records  []*record // of each index, the newest
	holders  []holder  // PostgreSQL
	queue    []holder  // PostgreSQL: those that wait for it, in order
}

// A version is what a transaction made of a row; no values if it deleted it.
type version struct {
	by     *tx
	values []any
}

func (t *table) column(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}

func (r *row) latest() version {
	if n := len(r.versions); n > 0 {
		return r.versions[n-1]
	}
	return version{}
}

func (i *index) keyOf(values []any) []any {
	key := make([]any, len(i.columns))
	for n, c := range i.columns {
		key[n] = values[c]
	}
	return key
}

func (i *index) primary() bool { return i == i.table.indexes[0] }

// compareKeys compares a key with the first columns of another.
func compareKeys(a, b []any) int {
	for i := range min(len(a), len(b)) {
		if c := compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// seek returns the position of the first record that is not below a key.
func (i *index) seek(key []any) int {
	return sort.Search(len(i.records), func(n int) bool { return compareKeys(i.records[n].key, key) >= 0 })
}

// at returns the record at a position, the supremum at the end.
func (i *index) at(n int) *record {
	if n < len(i.records) {
		return i.records[n]
	}
	return i.supremum
}

// after returns the record that follows r, which may be gone.
func (i *index) after(r *record) *record {
	if r == i.supremum {
		return r
	}
	n := i.seek(r.full())
	if n < len(i.records) && i.records[n] == r {
		n++
	}
	return i.at(n)
}

// full is the key with that of the row, by which the records of a secondary index are
// in order.
func (r *record) full() []any {
	if r.index.primary() {
		return r.key
	}
	return append(slices.Clip(r.key), r.row.records[0].key...)
}

func (i *index) position(r *record) int {
	full := r.full()
	return sort.Search(len(i.records), func(n int) bool { return compareKeys(i.records[n].full(), full) >= 0 })
}

func (i *index) add(r *record) { i.records = slices.Insert(i.records, i.position(r), r) }

func (i *index) remove(r *record) {
	if n := slices.Index(i.records, r); n >= 0 {
		i.records = slices.Delete(i.records, n, n+1)
	}
}

// create makes a table, if it is not there.
func (db *Database) create(st *statement) error {
	if db.tables[st.table] != nil {
		return nil
	}
	if len(st.keys) == 0 || !st.keys[0].primary {
		return fmt.Errorf("table %s has no primary key", st.table)
	}
	t := &table{name: st.table, columns: slices.Clone(st.defined)} // the statement is kept, for all databases
	for _, k := range st.keys {
		if err := db.addIndex(t, k); err != nil {
			return err
		}
	}
	db.tables[t.name] = t
	db.names = append(db.names, t.name)
	return nil
}

func (db *Database) addIndex(t *table, k key) error {
	i := &index{name: k.name, table: t}
	for _, name := range k.columns {
		c := t.column(name)
		if c < 0 {
			return fmt.Errorf("no column %s", name)
		}
		t.columns[c].notNull = t.columns[c].notNull || k.primary
		i.columns = append(i.columns, c)
	}
	switch {
	case db.postgres() && k.primary:
		i.name = t.name + "_pkey"
	case db.postgres() && k.name == "":
		i.name = t.name + "_" + strings.Join(k.columns, "_") + "_key"
	case k.name == "":
		i.name = k.columns[0]
	}
	i.supremum = &record{index: i}
	t.indexes = append(t.indexes, i)
	return nil
}
