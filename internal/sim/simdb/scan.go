package simdb

import (
	"fmt"
	"slices"
)

// A scan is how the rows of a table are found: by whole keys of an index, or all of
// them from the first or after a key.
type scan struct {
	table *table
	index *index // the primary key, unless keys are of another one
	keys  [][]any
	after []any
	match func(values []any) (bool, error)
}

// plan chooses an index whose columns all have one value, the primary key first.
func (v *env) plan(t *table, where *expr) (*scan, error) {
	sc := &scan{table: t, index: t.indexes[0]}
	sc.match = func(values []any) (bool, error) {
		if where == nil {
			return true, nil
		}
		w := *v
		w.table, w.row = t, values
		got, err := where.eval(&w)
		return truth(got), err
	}
	conditions := conjuncts(where)
	for _, i := range t.indexes {
		keys, err := v.keysOf(i, conditions)
		if err != nil || keys != nil {
			sc.index, sc.keys = i, keys
			return sc, err
		}
	}
	for _, c := range conditions {
		if c.op == ">" && c.args[0].op == "column" && t.column(c.args[0].name) == sc.index.columns[0] && c.args[1].constant() {
			low, err := c.args[1].eval(v)
			sc.after = []any{low}
			return sc, err
		}
	}
	return sc, nil
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

// keysOf returns the keys of an index that conditions name; nil if they do not.
func (v *env) keysOf(i *index, conditions []*expr) (keys [][]any, err error) {
	var key []any
	for _, c := range i.columns {
		values, err := v.valuesOf(i.table.columns[c].name, conditions)
		if err != nil || values == nil {
			return nil, err
		}
		if len(values) == 0 {
			return [][]any{}, nil
		}
		if len(values) > 1 && len(i.columns) == 1 {
			slices.SortFunc(values, compare)
			for _, value := range slices.CompactFunc(values, func(a, b any) bool { return compare(a, b) == 0 }) {
				keys = append(keys, []any{value})
			}
			return keys, nil
		}
		key = append(key, values[0])
	}
	return [][]any{key}, nil
}

func (v *env) valuesOf(name string, conditions []*expr) (values []any, err error) {
	for _, c := range conditions {
		if c.op != "=" && c.op != "IN" || c.args[0].op != "column" || c.args[0].name != name {
			continue
		}
		if c.query != nil {
			found, err := v.query(c.query)
			return append([]any{}, found...), err
		}
		for _, a := range c.args[1:] {
			if !a.constant() {
				return nil, nil
			}
			value, err := a.eval(v)
			if err != nil {
				return nil, err
			}
			values = append(values, value)
		}
		return values, nil
	}
	return nil, nil
}

// found calls f for the rows of a statement: as the view has them, or locked.
func (s *session) found(v *env, st *statement, l locking, f func(*row, []any) (bool, error)) error {
	t := s.db.tables[st.table]
	if t == nil {
		return s.db.noTable(st.table)
	}
	sc, err := v.plan(t, st.where)
	if err != nil {
		return err
	}
	if st.order != "" && t.column(st.order) != t.indexes[0].columns[0] {
		return s.db.unknown(fmt.Errorf("ORDER BY %s: not the primary key", st.order))
	}
	if l.mode != 0 {
		return s.db.engine().find(s.tx, sc, l, f)
	}
	if !s.db.postgres() {
		s.tx.look()
	}
	var last []any
	for _, r := range sc.rows() {
		values := s.tx.read(r)
		if values == nil {
			continue
		}
		if key := sc.index.keyOf(values); sc.keys != nil && !s.db.postgres() {
			if last != nil && compareKeys(last, key) == 0 {
				continue // a lookup by a unique key ends with the first row, be it deleted since
			}
			last = key
		}
		ok, err := sc.match(values)
		if err == nil && ok {
			ok, err = f(r, values)
			if err == nil && !ok {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
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
		for n := sc.index.seek(key); n < len(sc.index.records) && compareKeys(sc.index.records[n].key, key) == 0; n++ {
			if r := sc.index.records[n].row; !slices.Contains(rows, r) {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

func (sc *scan) start() int {
	if sc.after == nil {
		return 0
	}
	n := sc.index.seek(sc.after)
	if n < len(sc.index.records) && compareKeys(sc.index.records[n].key, sc.after) == 0 {
		n++
	}
	return n
}
