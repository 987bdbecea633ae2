package simdb

import (
	"slices"
	"sort"
)

type column struct {
	name      string
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

// An index is unique, and of one column. The first one is the primary key.
type index struct {
	name     string
	table    *table
	column   int
	records  []*record // in order
	supremum *record   // stands for the end, where gaps are locked
}

// A record is an entry of an index. A secondary index may have several with one key,
// of which at most one is not deleted.
type record struct {
	index   *index
	key     any
	row     *row
	deleted bool // marked: nothing here purges it
	by      *tx  // the last to write it: while it runs, it has an implicit lock
	locks   []*lock
}

// A row is all its versions, the oldest first.
type row struct {
	table    *table
	versions []version
	records  []*record // of each index
	holders  []holder  // PostgreSQL
	queue    []holder  // PostgreSQL: those that wait for it, in order
}

// A version is what a transaction made of a row; no values if it deleted it.
type version struct {
	by     *tx
	values []any
}

// column returns the place of a column.
func (t *table) column(name string) int {
	if t != nil {
		if n := slices.IndexFunc(t.columns, func(c column) bool { return c.name == name }); n >= 0 {
			return n
		}
	}
	panic(unknown("column " + name))
}

// record makes the record of a row for an index.
func (r *row) record(i *index, key any) *record {
	made := &record{index: i, key: key, row: r}
	r.records = append(r.records, made)
	return made
}

func (r *row) latest() version {
	if n := len(r.versions); n > 0 {
		return r.versions[n-1]
	}
	return version{}
}

// at returns the values of a row up to a commit, or as a running transaction has written
// them; nil if there are none.
func (r *row) at(upTo int64, own *tx) []any {
	for _, v := range slices.Backward(r.versions) {
		if v.seen(upTo, own) {
			return v.values
		}
	}
	return nil
}

func (v version) seen(upTo int64, own *tx) bool {
	return v.by == nil || v.by == own || v.by.committed > 0 && v.by.committed <= upTo
}

func (i *index) primary() bool { return i == i.table.indexes[0] }

// compareKeys compares columns in their order.
func compareKeys(a, b []any) int { return slices.CompareFunc(a, b, compare) }

// seek returns the position of the first record that is not below a key.
func (i *index) seek(key any) int {
	return sort.Search(len(i.records), func(n int) bool { return compare(i.records[n].key, key) >= 0 })
}

// at returns the record at a position, the supremum at the end.
func (i *index) at(n int) *record {
	if n < len(i.records) {
		return i.records[n]
	}
	return i.supremum
}

// has reports whether a record is of a key.
func (r *record) has(key any) bool { return r.row != nil && compare(r.key, key) == 0 }

// after returns the record that follows r, which may be gone.
func (i *index) after(r *record) *record {
	if r == i.supremum {
		return r
	}
	n := i.position(r)
	if i.at(n) == r {
		n++
	}
	return i.at(n)
}

// position returns where a record is, or would be: those of one key are in the order of the
// primary key.
func (i *index) position(r *record) int {
	return sort.Search(len(i.records), func(n int) bool {
		o := i.records[n]
		c := compare(o.key, r.key)
		if c == 0 && !i.primary() {
			c = compare(o.row.records[0].key, r.row.records[0].key)
		}
		return c >= 0
	})
}

func (i *index) add(r *record) { i.records = slices.Insert(i.records, i.position(r), r) }

func (i *index) remove(r *record) {
	if n := slices.Index(i.records, r); n >= 0 {
		i.records = slices.Delete(i.records, n, n+1)
	}
}

// create makes a table, if it is not there.
func (db *Database) create(st *statement) {
	if db.tables[st.table] != nil {
		return
	}
	t := &table{name: st.table, columns: slices.Clone(st.defined)} // the statement is kept, for all databases
	db.addIndex(t, key{column: st.primary})
	for _, k := range st.keys {
		db.addIndex(t, k)
	}
	db.tables[t.name] = t
}

func (db *Database) addIndex(t *table, k key) {
	i := &index{name: k.name, table: t, column: t.column(k.column)}
	switch {
	case t.indexes == nil: // the primary key
		t.columns[i.column].notNull = true
		if i.name = "PRIMARY"; db.postgres() {
			i.name = t.name + "_pkey"
		}
	case k.name == "":
		i.name = t.name + "_" + k.column + "_key" // PostgreSQL's
	}
	i.supremum = &record{index: i}
	t.indexes = append(t.indexes, i)
}
