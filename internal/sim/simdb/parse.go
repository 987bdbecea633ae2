package simdb

import (
	"fmt"
	"strings"
	"sync"
)

// A statement is one that the simulation can execute.
type statement struct {
	kind      string // SELECT, INSERT, UPDATE, DELETE, CREATE TABLE, or what the others begin with
	table     string
	items     []*expr    // what a SELECT or a RETURNING returns; none of a SELECT is *
	due       *statement // WITH due AS MATERIALIZED (...)
	from      *statement // FROM (SELECT ...): the condition is one on what that returns
	where     *expr
	unclaimed bool // of answers: only those without a claim
	order     []string
	limit     *expr
	lock      locking
	columns   []string
	rows      [][]*expr
	set       []assignment
	upsert    bool // ON DUPLICATE KEY UPDATE, ON CONFLICT
	returning bool
	name      string     // of a savepoint, or a level
	wait      *int64     // SET STATEMENT innodb_lock_wait_timeout=...
	left      *statement // LEFT JOIN: the row of the other table, with the same arguments
	joined    *join
	union     []*statement // UNION ALL: the others
	failures  [][]*expr    // that an INSERT of the relay joins with their messages
	ask       answer       // to a question about the server
	definition
}

type assignment struct {
	column string
	value  *expr
}

// locking is how a SELECT locks what it finds.
type locking struct {
	mode         mode
	nowait, skip bool
}

// controls are the statements that begin and end transactions.
var controls = map[string]*statement{
	"BEGIN":                                          {kind: "BEGIN"},
	"BEGIN ISOLATION LEVEL REPEATABLE READ":          {kind: "BEGIN", name: repeatableRead},
	"BEGIN ISOLATION LEVEL READ COMMITTED":           {kind: "BEGIN", name: readCommitted},
	"START TRANSACTION":                              {kind: "BEGIN"},
	"START TRANSACTION WITH CONSISTENT SNAPSHOT":     {kind: "BEGIN", name: snapshot},
	"SET TRANSACTION ISOLATION LEVEL READ COMMITTED": {kind: "SET", name: readCommitted},
	"COMMIT":                         {kind: "COMMIT"},
	"COMMIT AND NO CHAIN NO RELEASE": {kind: "COMMIT"},
	"ROLLBACK":                       {kind: "ROLLBACK"},
}

// parsed has the statements that were read. Those with a name or a number in them are not
// kept: there are ever more of them.
var parsed sync.Map

const release = "RELEASE SAVEPOINT"

// parse returns the statement of a text.
func (db *Database) parse(sql string) (*statement, error) {
	if st := controls[sql]; st != nil {
		return st, nil
	}
	for _, kind := range []string{"SAVEPOINT", "ROLLBACK TO SAVEPOINT", release, "KILL SOFT", "KILL", setWait, setLimit} {
		if name, ok := strings.CutPrefix(sql, kind+" "); ok && !db.foreign(kind) {
			return &statement{kind: kind, name: name}, nil
		}
	}
	type key struct {
		postgres bool
		sql      string
	}
	if st, ok := parsed.Load(key{db.postgres(), sql}); ok {
		return st.(*statement), nil
	}
	if parts := strings.Split(sql, ") UNION ALL (SELECT m."); len(parts) > 1 {
		return db.parts(parts)
	}
	st, err := &statement{kind: "ASK", ask: db.answerTo(sql)}, error(nil)
	if st.ask == nil {
		st, err = read(sql)
	}
	if err == nil && st.failures == nil {
		parsed.Store(key{db.postgres(), sql}, st)
	}
	return st, err
}

// writes reports whether a statement is an INSERT, UPDATE or DELETE.
func (db *Database) writes(sql string) bool {
	st, err := db.parse(sql)
	return err == nil && (st.kind == "INSERT" || st.kind == "UPDATE" || st.kind == "DELETE")
}

// A parser reads one statement. It panics with an unknown where that is not known.
type parser struct {
	tokens []token
	at     int
	params int
}

// unknown is why a statement is not known.
type unknown string

// known turns a panic with an unknown into an error.
func known(err *error) {
	switch e := recover().(type) {
	case nil:
	case unknown:
		*err = fmt.Errorf("%w: %s", errUnknown, string(e))
	default:
		panic(e)
	}
}

func read(sql string) (st *statement, err error) {
	defer known(&err)
	p := &parser{tokens: tokens(sql)}
	st = p.statement()
	if p.at < len(p.tokens) {
		p.fail()
	}
	return st, nil
}

func (p *parser) fail() {
	var rest []string
	for _, t := range p.tokens[min(p.at, len(p.tokens)):min(p.at+4, len(p.tokens))] {
		rest = append(rest, t.text)
	}
	panic(unknown("not expected: " + strings.Join(rest, " ")))
}

func (p *parser) peek() token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return token{}
}

func (p *parser) next() token {
	t := p.peek()
	p.at++
	return t
}

// is takes the tokens if they come next, which are given with a space between.
func (p *parser) is(words string) bool {
	at := p.at
	for w := range strings.FieldsSeq(words) {
		if at >= len(p.tokens) || p.tokens[at].kind == 'q' || p.tokens[at].text != w {
			return false
		}
		at++
	}
	p.at = at
	return true
}

func (p *parser) want(words string) {
	if !p.is(words) {
		p.fail()
	}
}

// ident reads a name, of which only the last part counts.
func (p *parser) ident() string {
	_, name := p.qualified()
	return name
}

// qualified reads a name, and the part before its last.
func (p *parser) qualified() (of, name string) {
	for {
		t := p.peek()
		if t.kind != 'w' && t.kind != 'q' {
			p.fail()
		}
		p.at++
		if of, name = name, strings.ToLower(t.name); !p.is(".") {
			return of, name
		}
	}
}

// some reads what has commas between.
func (p *parser) some(read func()) {
	for read(); p.is(","); {
		read()
	}
}

// list reads what is between parentheses, with commas between.
func (p *parser) list(read func()) {
	p.want("(")
	p.some(read)
	p.want(")")
}

func (p *parser) statement() *statement {
	switch {
	case p.is("SET STATEMENT INNODB_LOCK_WAIT_TIMEOUT ="):
		return p.bounded()
	case p.is("SELECT C . PRINT"):
		return p.claim()
	case p.is("SELECT"):
		return p.selection()
	case p.is("( SELECT"):
		st := p.selection()
		p.want(")")
		return st
	case p.is("INSERT INTO"):
		return p.insertion()
	case p.is("UPDATE"):
		return p.update()
	case p.is("DELETE FROM"):
		return p.deletion()
	case p.is("DELETE BELAY_MESSAGE FROM"):
		return p.deletion()
	case p.is("WITH DUE AS MATERIALIZED ( SELECT"):
		due := p.selection()
		p.want(") UPDATE")
		st := p.update()
		st.due = due
		return st
	case p.is("CREATE TABLE"):
		return p.createTable()
	case p.is("CREATE UNIQUE INDEX"):
		return p.createIndex()
	case p.is("CREATE INDEX"): // it is of no use here
		p.at = len(p.tokens)
		return &statement{kind: "CREATE INDEX"}
	}
	p.fail()
	return nil
}

func (p *parser) selection() *statement {
	st := &statement{kind: "SELECT"}
	p.items(st)
	p.want("FROM")
	if p.is("( SELECT") {
		st.from = p.selection()
		p.want(") AS")
		p.ident()
		st.table = st.from.table
	} else {
		st.table = p.ident()
	}
	p.join(st)
	p.condition(st)
	if p.is("ORDER BY") {
		p.some(func() { st.order = append(st.order, p.ident()) })
	}
	if p.is("LIMIT") {
		st.limit = p.expr(0)
	}
	switch {
	case p.is("FOR UPDATE"):
		st.lock.mode = exclusive
	case p.is("FOR SHARE"), p.is("LOCK IN SHARE MODE"):
		st.lock.mode = shared
	}
	st.lock.nowait = p.is("NOWAIT")
	st.lock.skip = p.is("SKIP LOCKED")
	return st
}

func (p *parser) deletion() *statement {
	st := &statement{kind: "DELETE", table: p.ident()}
	p.is(byPrimary)
	p.condition(st)
	p.returns(st)
	return st
}

func (p *parser) condition(st *statement) {
	if p.is("WHERE") {
		st.where = p.expr(0)
	}
	if w := st.where; w != nil && w.op == "AND" && w.args[0].op == "NOT" && w.args[0].args[0].op == "has claim" {
		st.unclaimed, st.where = true, w.args[1]
	}
}

func (p *parser) items(st *statement) {
	if !p.is("*") {
		p.some(func() { st.items = append(st.items, p.expr(0)) })
	}
}

func (p *parser) returns(st *statement) {
	switch st.returning = p.is("RETURNING"); {
	case st.returning && p.is(numberPg):
		st.items = []*expr{{op: "number", name: "number"}, {op: "pid", name: "pid"}, {op: "start", name: "start"}}
	case st.returning:
		p.items(st)
	}
}

func (p *parser) insertion() *statement {
	st := &statement{kind: "INSERT", table: p.ident(), columns: p.names()}
	if p.is(parks) {
		p.parked(st)
	} else {
		p.want("VALUES")
		p.some(func() {
			var row []*expr
			p.list(func() { row = append(row, p.expr(0)) })
			st.rows = append(st.rows, row)
		})
	}
	switch {
	case p.is("ON DUPLICATE KEY UPDATE"):
		st.upsert, st.set = true, p.assignments()
	case p.is("ON CONFLICT"):
		st.upsert = true
		p.names()
		if !p.is("DO NOTHING") {
			p.want("DO UPDATE SET")
			st.set = p.assignments()
		}
	}
	p.returns(st)
	return st
}

func (p *parser) update() *statement {
	st := &statement{kind: "UPDATE", table: p.ident()}
	p.want("SET")
	st.set = p.assignments()
	p.condition(st)
	p.returns(st)
	return st
}

func (p *parser) assignments() (set []assignment) {
	p.some(func() {
		column := p.ident()
		p.want("=")
		set = append(set, assignment{column, p.expr(0)})
	})
	return set
}

// byPrimary is how MySQL is kept from another index.
const byPrimary = "FORCE INDEX ( PRIMARY )"

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
