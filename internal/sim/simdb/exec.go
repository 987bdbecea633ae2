package simdb

import (
	"errors"
	"slices"
	"time"
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
	// claimed reports whether there is the claim of an answer.
	claimed(t *tx, answer *env) (bool, error)
}

// run executes a statement that reads or writes rows, inside a transaction.
func (s *session) run(st *statement, args []any) (res *result, err error) {
	defer known(&err)
	v := &env{session: s, table: s.db.tables[st.table], args: args, now: time.Now().Add(s.db.ahead).UnixMicro()}
	if v.table == nil {
		panic(unknown("table " + st.table))
	}
	if st.due != nil {
		due, err := s.run(st.due, args)
		if err != nil {
			return nil, err
		}
		for _, r := range due.rows {
			v.due = append(v.due, r[0])
		}
	}
	res = head(v.table, st)
	switch st.kind {
	case "SELECT":
		if st.joined != nil {
			s.joinedRows(v, st, res)
			return res, nil
		}
		if err = s.selection(v, st, res); err == nil && st.left != nil {
			err = s.join(st.left, args, res)
		}
	case "INSERT":
		if st.failures != nil {
			st = s.parked(v, st)
		}
		err = s.insertion(v, st, res)
	case "UPDATE":
		err = s.update(v, st, res)
	case "DELETE":
		err = s.deletion(v, st, res)
	}
	return res, err
}

// head returns a result with the columns of a statement.
func head(t *table, st *statement) (res *result) {
	res = &result{}
	for _, it := range st.items {
		res.columns = append(res.columns, it.name)
	}
	if st.items == nil && st.kind == "SELECT" {
		for _, c := range t.columns {
			res.columns = append(res.columns, c.name)
		}
	}
	return res
}

func (s *session) selection(v *env, st *statement, res *result) error {
	limit := int64(-1)
	if st.limit != nil {
		limit = st.limit.eval(v).(int64)
	}
	if st.from != nil {
		return s.derived(v, st, res)
	}
	counts, n := len(st.items) == 1 && st.items[0].op == "count", int64(0)
	err := s.found(v, st, st.lock, func(_ *row, values []any) (bool, error) {
		if n++; !counts {
			res.rows = append(res.rows, project(v, st, values))
		}
		return n != limit, nil
	})
	if counts && err == nil {
		res.rows = [][]any{{n}}
	}
	return err
}

// derived executes a SELECT from what another one returns.
func (s *session) derived(v *env, st *statement, res *result) error {
	limit, n := st.from.limit.eval(v).(int64), int64(0)
	return s.found(v, st.from, st.lock, func(_ *row, values []any) (bool, error) {
		if st.where.true(v.of(values)) {
			res.rows = append(res.rows, project(v, st, values))
		}
		n++
		return n < limit, nil
	})
}

// project returns what a statement returns of a row.
func project(v *env, st *statement, values []any) []any {
	if st.items == nil {
		return values
	}
	w, out := v.of(values), make([]any, len(st.items))
	for i, it := range st.items {
		out[i] = it.eval(w)
	}
	return out
}

// overwrite sets columns of a row that the transaction has locked, and returns whether
// that altered it.
func (s *session) overwrite(v *env, st *statement, r *row, given []any) (int64, error) {
	old := r.latest().values
	next := slices.Clone(old)
	w := v.of(next) // MySQL assigns in order, and reads what it has assigned
	if w.given = given; s.db.postgres() {
		w.row = old
	}
	for _, a := range st.set {
		next[v.table.column(a.column)] = a.value.eval(w)
	}
	if !s.db.postgres() && compareKeys(next, old) == 0 {
		return 0, nil
	}
	for _, i := range v.table.indexes {
		if compare(next[i.column], old[i.column]) != 0 {
			panic(unknown("UPDATE of a key"))
		}
	}
	return 1, s.db.engine.update(s.tx, r, next)
}

func (s *session) update(v *env, st *statement, res *result) error {
	return s.found(v, st, locking{mode: noKey}, func(r *row, _ []any) (bool, error) {
		n, err := s.overwrite(v, st, r, nil)
		if res.affected += n; err == nil && st.returning {
			res.rows = append(res.rows, project(v, st, r.latest().values))
		}
		return true, err
	})
}

func (s *session) deletion(v *env, st *statement, res *result) error {
	return s.found(v, st, locking{mode: exclusive}, func(r *row, _ []any) (bool, error) {
		res.affected++
		was := r.latest().values
		err := s.db.engine.delete(s.tx, r)
		if err == nil && st.returning {
			res.rows = append(res.rows, project(v, st, was))
		}
		return true, err
	})
}

// errUnknown is the error of a statement that the simulation does not know.
var errUnknown = errors.New("simdb: unknown statement")
