package simdb

import "slices"

func (s *session) insertion(v *env, st *statement, res *result) error {
	numbers := &numbers{table: v.table, batch: int64(len(st.rows))}
	if s.db.postgres() {
		numbers.batch = 1
	}
	for _, given := range st.rows {
		values, id := s.newRow(v, numbers, st.columns, given)
		if res.lastID == 0 {
			res.lastID = id
		}
		existing, err := s.db.engine.insert(s.tx, v.table, values, st.upsert)
		if err != nil {
			return err
		}
		if existing != nil && id != 0 && !s.db.postgres() { // MariaDB gives the number again
			numbers.next--
			numbers.left++
		}
		switch {
		case existing == nil:
			res.affected++
		case st.set == nil:
			continue
		default:
			n, err := s.overwrite(v, st, existing, values)
			if err != nil {
				return err
			}
			if res.affected += n; !s.db.postgres() {
				res.affected += n
			}
			values = existing.latest().values
		}
		if st.returning {
			res.rows = append(res.rows, project(v, st, values))
		}
	}
	return nil
}

// numbers gives the rows of one statement their numbers, of which it reserves some at once.
type numbers struct {
	table       *table
	batch, left int64
	next        int64
}

func (n *numbers) take() int64 {
	if n.left == 0 {
		n.next, n.left = n.table.auto+1, n.batch
		n.table.auto += n.batch
	}
	n.left--
	n.next++
	return n.next - 1
}

// newRow returns the values of a row, and its number if that was given to it.
func (s *session) newRow(v *env, numbers *numbers, columns []string, given []*expr) (values []any, id int64) {
	t := v.table
	values = make([]any, len(t.columns))
	for i, c := range t.columns {
		e := c.byDefault
		if n := slices.Index(columns, c.name); n >= 0 {
			e = given[n]
		}
		if e != nil {
			values[i] = e.eval(v)
		}
		switch n, _ := values[i].(int64); {
		case c.auto && n == 0:
			id = numbers.take()
			values[i] = id
		case c.auto && !s.db.postgres():
			t.auto = max(t.auto, n)
		case c.notNull && values[i] == nil:
			panic(unknown("NULL in " + c.name))
		}
	}
	return values, id
}

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
