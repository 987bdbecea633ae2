package simdb

import (
	"errors"
	"fmt"
	"slices"
)

// A result is what a statement returns.
type result struct {
	columns  []string
	rows     [][]any
	affected int64
	lastID   int64
	err      error
	gone     bool // the connection ends with it
}

// An engine is how a personality finds, locks and writes rows. A call that has to wait
// passes the baton on.
type engine interface {
	// find locks the rows that a scan meets, and calls f with their newest values until
	// it returns false.
	find(t *tx, sc *scan, l locking, f func(*row, []any) (bool, error)) error
	insert(t *tx, tb *table, values []any, upsert bool) (existing *row, err error)
	update(t *tx, r *row, values []any) error
	delete(t *tx, r *row) error
}

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

// run executes a statement that reads or writes rows, inside a transaction.
func (s *session) run(st *statement, args []any) (res *result, err error) {
	v := &env{args: args}
	v.query = func(q *statement) (first []any, err error) {
		sub, err := s.selection(v, q)
		if err != nil {
			return nil, err
		}
		for _, r := range sub.rows {
			first = append(first, r[0])
		}
		return first, nil
	}
	if st.due != nil {
		due, err := v.query(st.due)
		if err != nil {
			return nil, err
		}
		above := v.query
		v.query = func(q *statement) ([]any, error) {
			if q.table == st.due.name {
				return due, nil
			}
			return above(q)
		}
	}
	switch st.kind {
	case "SELECT":
		return s.selection(v, st)
	case "INSERT":
		return s.insertion(v, st)
	case "UPDATE":
		return s.update(v, st)
	case "DELETE":
		return s.deletion(v, st)
	}
	return nil, s.db.unknown(fmt.Errorf("unknown statement %s", st.kind))
}

func (s *session) selection(v *env, st *statement) (*result, error) {
	limit := -1
	if st.limit != nil {
		n, err := st.limit.eval(v)
		if err != nil {
			return nil, err
		}
		limit = int(n.(int64))
	}
	res, counts := s.head(st), len(st.items) == 1 && st.items[0].value.op == "count"
	n := int64(0)
	take := func(_ *row, values []any) (bool, error) {
		if n++; !counts {
			out, err := s.project(v, st, values)
			if err != nil {
				return false, err
			}
			res.rows = append(res.rows, out)
		}
		return limit < 0 || n < int64(limit), nil
	}
	var err error
	switch {
	case limit == 0:
	case st.from != nil:
		var sub []any
		sub, err = v.query(st.from)
		n = int64(len(sub))
	case st.table != "":
		err = s.found(v, st, st.lock, take)
	default:
		_, err = take(nil, nil)
	}
	if counts && err == nil {
		res.rows = [][]any{{n}}
	}
	return res, err
}

// head returns a result with the columns of a statement.
func (s *session) head(st *statement) *result {
	res := &result{}
	for _, it := range st.items {
		res.columns = append(res.columns, it.name)
	}
	if t := s.db.tables[st.table]; t != nil && st.items == nil && (st.returning || st.kind == "SELECT") {
		for _, c := range t.columns {
			res.columns = append(res.columns, c.name)
		}
	}
	return res
}

func (s *session) project(v *env, st *statement, values []any) ([]any, error) {
	if st.items == nil {
		return values, nil
	}
	w := *v
	w.table, w.row = s.db.tables[st.table], values
	out := make([]any, len(st.items))
	for i, it := range st.items {
		var err error
		if out[i], err = it.value.eval(&w); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *session) insertion(v *env, st *statement) (*result, error) {
	t := s.db.tables[st.table]
	if t == nil {
		return nil, s.db.noTable(st.table)
	}
	res := s.head(st)
	numbers := &numbers{table: t, rows: int64(len(st.rows)), postgres: s.db.postgres()}
	for _, given := range st.rows {
		values, id, err := s.newRow(v, numbers, st.columns, given)
		if err != nil {
			return nil, err
		}
		if id != 0 && res.lastID == 0 {
			res.lastID = id
		}
		existing, err := s.db.engine().insert(s.tx, t, values, st.upsert)
		if err != nil {
			return nil, err
		}
		if existing != nil && id != 0 {
			numbers.reuse()
		}
		switch {
		case existing == nil:
			res.affected++
		case len(st.set) > 0:
			n, err := s.overwrite(v, st, existing, values)
			if err != nil {
				return nil, err
			}
			res.affected += n
			if !s.db.postgres() {
				res.affected += n
			}
			values = existing.latest().values
		}
		if st.returning && (existing == nil || len(st.set) > 0) {
			out, err := s.project(v, st, values)
			if err != nil {
				return nil, err
			}
			res.rows = append(res.rows, out)
		}
	}
	return res, nil
}

// numbers gives the rows of one statement their numbers. MariaDB reserves as many as
// there are rows, and gives one again that a row had which is there already.
type numbers struct {
	table    *table
	rows     int64
	postgres bool
	next     int64 // 0 if none are reserved
}

func (n *numbers) take() int64 {
	if n.postgres {
		n.table.auto++
		return n.table.auto
	}
	if n.next == 0 {
		n.next = n.table.auto + 1
		n.table.auto += n.rows
	}
	n.next++
	return n.next - 1
}

func (n *numbers) reuse() {
	if !n.postgres {
		n.next--
	}
}

// newRow returns the values of a row, and its number if that was given to it.
func (s *session) newRow(v *env, numbers *numbers, columns []string, given []*expr) (values []any, id int64, err error) {
	t := numbers.table
	values = make([]any, len(t.columns))
	for i, c := range t.columns {
		e := c.byDefault
		if n := slices.Index(columns, c.name); n >= 0 && given[n].op != "default" {
			e = given[n]
		}
		if e != nil {
			if values[i], err = e.eval(v); err != nil {
				return nil, 0, err
			}
		}
		values[i] = convert(c.kind, values[i], s.db.postgres())
		switch n, _ := values[i].(int64); {
		case c.auto && n == 0:
			id = numbers.take()
			values[i] = id
		case c.auto && !s.db.postgres():
			t.auto = max(t.auto, n)
		case c.notNull && values[i] == nil:
			return nil, 0, s.db.isNull(c.name)
		}
	}
	return values, id, nil
}

// convert returns a value as a column keeps it.
func convert(kind int, v any, postgres bool) any {
	switch b, isBool := v.(bool); {
	case isBool && !postgres:
		return number(b)
	case kind == kindBool && postgres:
		if n, ok := v.(int64); ok {
			return n != 0
		}
	}
	return v
}

// overwrite sets columns of a row that the transaction has locked, and returns whether
// that altered it.
func (s *session) overwrite(v *env, st *statement, r *row, given []any) (int64, error) {
	t := r.table
	w := *v
	w.table, w.given = t, given
	next := slices.Clone(r.latest().values)
	w.row = next // MySQL assigns in order, and reads what it has assigned
	if s.db.postgres() {
		w.row = slices.Clone(next)
	}
	for _, a := range st.set {
		n := t.column(a.column)
		if n < 0 {
			return 0, s.db.unknown(fmt.Errorf("no column %s", a.column))
		}
		value, err := a.value.eval(&w)
		if err != nil {
			return 0, err
		}
		next[n] = convert(t.columns[n].kind, value, s.db.postgres())
	}
	if !s.db.postgres() && slices.EqualFunc(next, r.latest().values, func(a, b any) bool { return compare(a, b) == 0 }) {
		return 0, nil
	}
	return 1, s.db.engine().update(s.tx, r, next)
}

func (s *session) update(v *env, st *statement) (*result, error) {
	res := s.head(st)
	err := s.found(v, st, locking{mode: noKey}, func(r *row, _ []any) (bool, error) {
		n, err := s.overwrite(v, st, r, nil)
		res.affected += n
		if err != nil || !st.returning {
			return true, err
		}
		out, err := s.project(v, st, r.latest().values)
		res.rows = append(res.rows, out)
		return true, err
	})
	return res, err
}

func (s *session) deletion(v *env, st *statement) (*result, error) {
	res := s.head(st)
	err := s.found(v, st, locking{mode: exclusive}, func(r *row, values []any) (bool, error) {
		res.affected++
		if st.returning {
			out, err := s.project(v, st, values)
			if err != nil {
				return false, err
			}
			res.rows = append(res.rows, out)
		}
		return true, s.db.engine().delete(s.tx, r)
	})
	return res, err
}

// errUnknown is the error of a statement that the simulation does not know.
var errUnknown = errors.New("simdb: unknown statement")

func (db *Database) unknown(err error) error {
	err = fmt.Errorf("%w: %w", errUnknown, err)
	db.knobs.Unknown(err)
	return err
}
