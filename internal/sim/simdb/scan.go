package simdb

import (
	"slices"
	"strings"
)

// A scan is how the rows of a table are found: by keys of an index, or all of them from the
// first or after a key.
type scan struct {
	env
	where *expr
	index *index // the primary key, unless keys are of another one
	keys  []any
	after any
	also  func(values []any) (bool, error) // nil, or what else must hold
}

// plan chooses an index of which the values are given, the primary key first.
func (v *env) plan(where *expr) *scan {
	sc := &scan{env: *v, where: where, index: v.table.indexes[0]}
	conditions := conjuncts(where)
	for _, i := range v.table.indexes {
		if keys := v.keysOf(i, conditions); keys != nil {
			sc.index, sc.keys = i, keys
			return sc
		}
	}
	for _, c := range conditions {
		if c.op == ">" && sc.index.is(c.args[0]) {
			sc.after = c.args[1].eval(v)
		}
	}
	return sc
}

func conjuncts(e *expr) []*expr {
	switch {
	case e == nil:
		return nil
	case e.op == "AND":
		return append(conjuncts(e.args[0]), conjuncts(e.args[1])...)
	}
	return []*expr{e}
}

// is reports whether an expression is the column of an index.
func (i *index) is(e *expr) bool {
	return e.op == "column" && e.name == i.table.columns[i.column].name
}

// keysOf returns the keys of an index that conditions name; nil if they do not.
func (v *env) keysOf(i *index, conditions []*expr) []any {
	for _, c := range conditions {
		if len(c.args) == 0 || !i.is(c.args[0]) || c.op != "=" && c.op != "IN" && c.op != "IN due" {
			continue
		}
		keys := []any{}
		if c.op == "IN due" {
			keys = append(keys, v.due...)
		}
		for _, a := range c.args[1:] {
			keys = append(keys, a.eval(v))
		}
		slices.SortFunc(keys, compare)
		return slices.Compact(keys)
	}
	return nil
}

// match reports whether the condition of a scan holds for a row.
func (sc *scan) match(values []any) bool { return sc.where == nil || sc.where.true(sc.of(values)) }

// fits reports whether all conditions of a scan hold for a row.
func (sc *scan) fits(values []any) (bool, error) {
	if !sc.match(values) || sc.also == nil {
		return sc.match(values), nil
	}
	return sc.also(values)
}

// found calls f for the rows of a statement: as the view has them, or locked.
func (s *session) found(v *env, st *statement, l locking, f func(*row, []any) (bool, error)) error {
	sc := v.plan(st.where)
	if st.unclaimed {
		sc.also = func(values []any) (bool, error) {
			claimed, err := s.db.engine.claimed(s.tx, v.of(values))
			return !claimed, err
		}
	}
	var order []int
	for _, name := range st.order {
		order = append(order, v.table.column(name))
	}
	sorted := order != nil && order[0] != v.table.indexes[0].column
	if sorted && (l.mode != 0 || sc.keys != nil || slices.ContainsFunc(order, func(n int) bool { return !v.table.columns[n].notNull })) {
		panic(unknown("ORDER BY " + strings.Join(st.order, ", ")))
	}
	if l.mode != 0 {
		return s.db.engine.find(s.tx, sc, l, f)
	}
	if !s.db.postgres() {
		s.tx.look()
	}
	rows := sc.rows()
	if sorted {
		s.sort(rows, order)
	}
	var last any
	for _, r := range rows {
		values := s.tx.read(r)
		if values == nil {
			continue
		}
		if key := values[sc.index.column]; sc.keys != nil && !s.db.postgres() {
			if last == key {
				continue // a lookup by a unique key ends with the first row, be it deleted since
			}
			last = key
		}
		if !sc.match(values) {
			continue
		}
		if more, err := f(r, values); err != nil || !more {
			return err
		}
	}
	return nil
}

// sort sorts rows by columns, as the transaction sees them.
func (s *session) sort(rows []*row, columns []int) {
	key := func(r *row) []any {
		values := s.tx.read(r)
		if values == nil {
			return nil
		}
		var key []any
		for _, n := range columns {
			key = append(key, values[n])
		}
		return key
	}
	slices.SortStableFunc(rows, func(a, b *row) int { return compareKeys(key(a), key(b)) })
}

// rows returns the rows that any version of which a scan may meet.
func (sc *scan) rows() (rows []*row) {
	if sc.keys == nil {
		for _, r := range sc.index.records[sc.start():] {
			rows = append(rows, r.row)
		}
		return rows
	}
	for _, key := range sc.keys {
		for n := sc.index.seek(key); sc.index.at(n).has(key); n++ {
			if r := sc.index.records[n].row; !slices.Contains(rows, r) {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

func (sc *scan) start() int {
	n := sc.index.seek(sc.after)
	if sc.index.at(n).has(sc.after) {
		n++
	}
	return n
}

// A join is a LEFT JOIN with a table of which one row belongs to each, at most.
type join struct {
	table, alias string
	on           *expr
}

// An other is the row of a joined table, nil if there is none.
type other struct {
	*table

	alias string
	row   []any
}

func (o *other) value(name string) any {
	n := o.column(name)
	if o.row == nil {
		return nil
	}
	return o.row[n]
}

// joinedRows reads the rows of a table, each with that of the other one.
func (s *session) joinedRows(v *env, st *statement, res *result) {
	if !s.db.postgres() {
		s.tx.look()
	}
	for _, part := range append([]*statement{st}, st.union...) {
		res.rows = append(res.rows, s.part(v, part)...)
	}
}

func (s *session) part(v *env, st *statement) (rows [][]any) {
	with := s.db.tables[st.joined.table]
	if with == nil {
		panic(unknown("table " + st.joined.table))
	}
	var found [][]any
	for _, values := range s.seen(v.table) {
		if s.beside(v, st, with, values).fits(st.where) {
			found = append(found, values)
		}
	}
	slices.SortStableFunc(found, func(a, b []any) int {
		for _, name := range st.order {
			n := v.table.column(name)
			if c := compare(a[n], b[n]); c != 0 {
				return c
			}
		}
		return 0
	})
	if st.limit != nil {
		found = found[:min(len(found), int(st.limit.eval(v).(int64)))]
	}
	for _, values := range found {
		rows = append(rows, project(s.beside(v, st, with, values), st, values))
	}
	return rows
}

// seen returns the rows of a table that a plain read of the transaction sees.
func (s *session) seen(t *table) (rows [][]any) {
	for _, r := range t.indexes[0].records {
		if values := s.tx.read(r.row); values != nil {
			rows = append(rows, values)
		}
	}
	return rows
}

// beside returns an env for a row and the one that belongs to it.
func (s *session) beside(v *env, st *statement, with *table, values []any) *env {
	w := v.of(values)
	w.other = &other{table: with, alias: st.joined.alias}
	for _, row := range s.seen(with) {
		if w.other.row = row; st.joined.on.true(w) {
			return w
		}
	}
	w.other.row = nil
	return w
}

func (v *env) fits(condition *expr) bool { return condition == nil || condition.true(v) }
