package simdb

import "slices"

// What the relay of messages sends beside simple statements: reads of several lanes, each with what parks
// its keys, and an INSERT of messages that were not accepted.

// byPrimary is how MySQL is kept from another index.
const byPrimary = "FORCE INDEX ( PRIMARY )"

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

// join reads what is joined, if that comes next.
func (p *parser) join(st *statement) {
	if n := p.at + 2; n >= len(p.tokens) || p.tokens[p.at+1].text != "LEFT" || p.tokens[n].text != "JOIN" {
		return
	}
	p.ident() // the alias of the first table
	p.want("LEFT JOIN")
	st.joined = &join{table: p.ident(), alias: p.ident()}
	p.is(byPrimary)
	p.want("ON")
	st.joined.on = p.expr(0)
}

// parts returns a statement of several SELECTs with UNION ALL between, which are kept one by one: there are
// ever more of the whole.
func (db *Database) parts(texts []string) (first *statement, err error) {
	for n, text := range texts {
		if n > 0 {
			text = "(SELECT m." + text
		}
		if n < len(texts)-1 {
			text += ")"
		}
		st, err := db.parse(text)
		switch {
		case err != nil:
			return nil, err
		case n == 0:
			copied := *st
			first = &copied
		default:
			first.union = append(first.union, st)
		}
	}
	return first, nil
}

// joinedRows reads the rows of a table, each with that of the other one.
func (s *session) joinedRows(v *env, st *statement, res *result) error {
	if !s.db.postgres() {
		s.tx.look()
	}
	for _, part := range append([]*statement{st}, st.union...) {
		res.rows = append(res.rows, s.part(v, part)...)
	}
	return nil
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

// parks is how an INSERT of messages that were not accepted goes on behind its columns.
const parks = "SELECT M . KEY_SUM , M . LANE , M . MESSAGE_ID , F . ATTEMPTS , F . RETRY_AT , F . DEAD , F . REASON FROM ("

// parked reads such an INSERT up to what it does with a row that is there.
func (p *parser) parked(st *statement) {
	p.want("SELECT")
	for more := true; more; more = p.is("UNION ALL SELECT") {
		var failure []*expr
		p.some(func() {
			failure = append(failure, p.expr(0))
			p.want("AS")
			p.ident()
		})
		st.failures = append(st.failures, failure)
	}
	p.want(") F")
	_ = p.is("STRAIGHT_JOIN") || p.is("JOIN")
	p.want("BELAY_MESSAGE M ON M . ID = F . ID")
	_ = p.is("STRAIGHT_JOIN") || p.is("JOIN")
	p.want("BELAY_LANE L ON L . LANE = M . LANE")
	p.condition(st)
}

// parked returns an INSERT of values in place of one of messages that were not accepted. It reads them as
// they are committed, and locks none.
func (s *session) parked(v *env, st *statement) *statement {
	if !s.db.postgres() {
		s.tx.look()
	}
	messages, lanes := s.db.tables["belay_message"], s.db.tables["belay_lane"]
	made := *st
	made.failures = nil
	for _, failure := range st.failures {
		for _, m := range s.seen(messages) {
			if compare(m[messages.column("id")], failure[0].eval(v)) != 0 {
				continue
			}
			for _, l := range s.seen(lanes) {
				w := v.of(m)
				w.table, w.other = messages, &other{table: lanes, alias: "l", row: l}
				if compare(l[lanes.column("lane")], m[messages.column("lane")]) != 0 || !w.fits(st.where) {
					continue
				}
				made.rows = append(made.rows, []*expr{
					valueOf(m[messages.column("key_sum")]), valueOf(m[messages.column("lane")]), valueOf(m[messages.column("message_id")]),
					failure[1], failure[2], failure[3], failure[4],
				})
			}
		}
	}
	return &made
}

func valueOf(v any) *expr { return &expr{op: "value", value: v} }
