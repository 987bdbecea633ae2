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
