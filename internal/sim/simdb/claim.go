package simdb

import (
	"strconv"
	"strings"
	"time"
)

// How long a session waits for a lock, as MySQL and PostgreSQL are told. MariaDB is told by
// SET STATEMENT, too.
const (
	setWait  = "SET innodb_lock_wait_timeout ="
	setLimit = "SET LOCAL lock_timeout ="
)

// foreign reports whether only the other server is sent such a statement.
func (db *Database) foreign(kind string) bool {
	if db.postgres() {
		return kind == setWait || kind == release
	}
	return kind == setLimit
}

// bounded reads a statement behind SET STATEMENT.
func (p *parser) bounded() *statement {
	e := p.expr(0)
	n, ok := e.value.(int64)
	p.want("FOR")
	st := p.statement()
	if !ok || st.wait != nil {
		p.fail()
	}
	st.wait = &n
	return st
}

// claim reads the question what is known of a request.
func (p *parser) claim() *statement {
	p.want(", C . HELD , A . REFUSED , A . CODEC , A . BODY FROM BELAY_ONCE C LEFT JOIN BELAY_ANSWER A ON A . REQUEST = C . REQUEST WHERE C . REQUEST =")
	key := p.operand()
	of := func(table string, columns ...string) *statement {
		st := &statement{kind: "SELECT", table: table, where: &expr{op: "=", args: []*expr{{op: "column", name: "request"}, key}}}
		for _, name := range columns {
			st.items = append(st.items, &expr{op: "column", name: name})
		}
		return st
	}
	st := of("belay_once", "print", "held")
	st.left = of("belay_answer", "refused", "codec", "body")
	return st
}

// join adds the row of another table to that of a result, if there is one.
func (s *session) join(st *statement, args []any, res *result) error {
	other, err := s.run(st, args)
	if err != nil {
		return err
	}
	res.columns = append(res.columns, other.columns...)
	for i, row := range res.rows {
		found := make([]any, len(other.columns))
		if len(other.rows) > 0 {
			found = other.rows[0]
		}
		res.rows[i] = append(row, found...)
	}
	return nil
}

// claimOf returns the table of claims, and the key of the one that an answer belongs to.
func (answer *env) claimOf(t *tx) (i *index, key any) {
	return t.session.db.tables["belay_once"].indexes[0], answer.row[answer.table.column("request")]
}

// claimed locks the claim, at any level.
func (e innodb) claimed(t *tx, answer *env) (bool, error) {
	i, key := answer.claimOf(t)
	t.lockTable(i.table, shared)
	r, err := e.findKey(t, i, key, locking{mode: shared})
	if err != nil || r == nil {
		return false, err
	}
	found := false
	_, err = e.use(t, &scan{env: env{table: i.table, args: answer.args, now: answer.now}, index: i}, r, func(*row, []any) (bool, error) {
		found = true
		return false, nil
	})
	return found, err
}

func (heap) claimed(t *tx, answer *env) (bool, error) {
	i, key := answer.claimOf(t)
	for n := i.seek(key); i.at(n).has(key); n++ {
		if t.read(i.records[n].row) != nil {
			return true, nil
		}
	}
	return false, nil
}

// limit sets how long the session waits for a lock from now on, on PostgreSQL until the
// transaction ends, or goes back behind this point.
func (s *session) limit(st *statement) {
	n, err := strconv.ParseInt(strings.Trim(st.name, "' "), 10, 64)
	if err != nil {
		panic(unknown(st.kind + " " + st.name))
	}
	if st.kind == setWait {
		s.wait = time.Duration(n) * time.Second
		return
	}
	if t := s.tx; t != nil {
		was := t.limit
		t.limit = time.Duration(n) * time.Millisecond
		t.undo = append(t.undo, func() { t.limit = was })
	}
}
