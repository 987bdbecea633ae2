package simdb

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// A statement is one that the simulation can execute.
type statement struct {
	kind      string // SELECT, INSERT, UPDATE, DELETE, CREATE TABLE, or the words of the others
	table     string
	items     []item // what a SELECT or a RETURNING returns; none of a SELECT is *
	from      *statement
	due       *statement // WITH due AS MATERIALIZED (...)
	where     *expr
	order     string
	limit     *expr
	lock      locking
	columns   []string
	rows      [][]*expr
	set       []assignment
	upsert    bool // ON DUPLICATE KEY UPDATE, ON CONFLICT
	returning bool
	name      string // of a savepoint, or a level
	definition
}

type item struct {
	name  string
	value *expr
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

// A parser reads one statement.
type parser struct {
	tokens []token
	at     int
	params int
}

// parsed has what parse returned for a text. A text is parsed once.
var parsed sync.Map

func parseOnce(sql string) (*statement, error) {
	if st, ok := parsed.Load(sql); ok {
		return st.(*statement), nil
	}
	st, err := parse(sql)
	if err == nil {
		parsed.Store(sql, st)
	}
	return st, err
}

// errParse ends the parsing of a statement that is not known.
type errParse string

func parse(sql string) (st *statement, err error) {
	found, err := tokens(sql)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e, ok := recover().(errParse); ok {
			st, err = nil, fmt.Errorf("%s", string(e))
		} else if st == nil && err == nil {
			err = fmt.Errorf("unknown")
		}
	}()
	p := &parser{tokens: found}
	st = p.statement()
	if p.at < len(p.tokens) {
		p.fail()
	}
	return st, nil
}

func (p *parser) fail() {
	rest := make([]string, 0, 4)
	for _, t := range p.tokens[min(p.at, len(p.tokens)):min(p.at+4, len(p.tokens))] {
		rest = append(rest, t.text)
	}
	panic(errParse("not expected: " + strings.Join(rest, " ")))
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

// is takes the words or signs if they come next.
func (p *parser) is(words ...string) bool {
	for i, w := range words {
		if p.at+i >= len(p.tokens) {
			return false
		}
		if t := p.tokens[p.at+i]; t.kind != 'w' && t.kind != 'o' || t.text != w {
			return false
		}
	}
	p.at += len(words)
	return true
}

func (p *parser) want(words ...string) {
	if !p.is(words...) {
		p.fail()
	}
}

// ident reads a name, of which only the last part counts.
func (p *parser) ident() string {
	for {
		t := p.next()
		if t.kind != 'w' && t.kind != 'q' {
			p.at--
			p.fail()
		}
		if !p.is(".") {
			return strings.ToLower(t.name)
		}
	}
}

// list reads what is between parentheses, with commas between.
func (p *parser) list(read func()) {
	p.want("(")
	for read(); p.is(","); {
		read()
	}
	p.want(")")
}

func (p *parser) statement() *statement {
	switch {
	case p.is("SELECT"):
		return p.selection()
	case p.is("INSERT", "INTO"):
		return p.insertion()
	case p.is("UPDATE"):
		return p.update(&statement{})
	case p.is("DELETE", "FROM"):
		st := &statement{kind: "DELETE", table: p.ident()}
		p.conditions(st)
		p.returns(st)
		return st
	case p.is("WITH"):
		name := p.ident()
		p.want("AS", "MATERIALIZED", "(", "SELECT")
		due := p.selection()
		due.name = name
		p.want(")", "UPDATE")
		return p.update(&statement{due: due})
	case p.is("CREATE", "TABLE"):
		return p.createTable()
	case p.is("CREATE", "UNIQUE", "INDEX"):
		return p.createIndex()
	}
	return p.control()
}

// control reads what begins and ends transactions.
func (p *parser) control() *statement {
	switch {
	case p.is("START", "TRANSACTION", "WITH", "CONSISTENT", "SNAPSHOT"):
		return &statement{kind: "BEGIN", name: "SNAPSHOT"}
	case p.is("START", "TRANSACTION"), p.is("BEGIN"):
		st := &statement{kind: "BEGIN"}
		if p.is("ISOLATION", "LEVEL") {
			st.name = p.level()
		}
		return st
	case p.is("COMMIT"), p.is("ROLLBACK", "TO"), p.is("ROLLBACK"), p.is("SAVEPOINT"), p.is("RELEASE"):
		words := p.tokens[:p.at]
		st := &statement{kind: words[0].text}
		switch p.is("SAVEPOINT"); {
		case len(words) == 2:
			st.kind, st.name = "ROLLBACK TO", p.ident()
		case st.kind == "SAVEPOINT" || st.kind == "RELEASE":
			st.name = p.ident()
		}
		return st
	case p.is("SET", "TRANSACTION", "ISOLATION", "LEVEL"):
		return &statement{kind: "SET NEXT", name: p.level()}
	case p.is("SET", "SESSION", "TRANSACTION", "ISOLATION", "LEVEL"), p.is("SET", "SESSION", "CHARACTERISTICS", "AS", "TRANSACTION", "ISOLATION", "LEVEL"):
		return &statement{kind: "SET SESSION", name: p.level()}
	}
	p.fail()
	return nil
}

func (p *parser) level() string {
	switch {
	case p.is("READ", "COMMITTED"):
		return readCommitted
	case p.is("REPEATABLE", "READ"):
		return repeatableRead
	}
	p.fail()
	return ""
}

func (p *parser) selection() *statement {
	st := &statement{kind: "SELECT", items: p.items()}
	if !p.is("FROM") {
		return st
	}
	if p.is("(") {
		p.want("SELECT")
		st.from = p.selection()
		p.want(")")
		if p.is("AS"); p.peek().kind == 'w' {
			p.ident()
		}
	} else {
		st.table = p.ident()
	}
	p.conditions(st)
	switch {
	case p.is("FOR", "UPDATE"):
		st.lock.mode = exclusive
	case p.is("FOR", "SHARE"), p.is("LOCK", "IN", "SHARE", "MODE"):
		st.lock.mode = shared
	}
	st.lock.nowait = p.is("NOWAIT")
	st.lock.skip = p.is("SKIP", "LOCKED")
	return st
}

// conditions reads WHERE, ORDER BY and LIMIT.
func (p *parser) conditions(st *statement) {
	if p.is("WHERE") {
		st.where = p.expr()
	}
	if p.is("ORDER", "BY") {
		st.order = p.ident()
		p.is("ASC")
	}
	if p.is("LIMIT") {
		st.limit = p.expr()
	}
}

func (p *parser) items() (items []item) {
	if p.is("*") {
		return nil
	}
	for {
		from := p.at
		e := p.expr()
		it := item{value: e, name: e.name}
		if it.name == "" {
			for _, t := range p.tokens[from:p.at] {
				it.name += t.text
			}
		}
		if p.is("AS") {
			it.name = p.ident()
		}
		items = append(items, it)
		if !p.is(",") {
			return items
		}
	}
}

func (p *parser) returns(st *statement) {
	if p.is("RETURNING") {
		st.returning, st.items = true, p.items()
	}
}

func (p *parser) insertion() *statement {
	st := &statement{kind: "INSERT", table: p.ident()}
	p.list(func() { st.columns = append(st.columns, p.ident()) })
	p.want("VALUES")
	for {
		var row []*expr
		p.list(func() { row = append(row, p.expr()) })
		st.rows = append(st.rows, row)
		if !p.is(",") {
			break
		}
	}
	switch {
	case p.is("ON", "DUPLICATE", "KEY", "UPDATE"):
		st.upsert, st.set = true, p.assignments()
	case p.is("ON", "CONFLICT"):
		st.upsert = true
		if p.is("(") {
			p.at--
			p.list(func() { p.ident() })
		}
		if p.is("DO", "UPDATE", "SET") {
			st.set = p.assignments()
		} else {
			p.want("DO", "NOTHING")
		}
	}
	p.returns(st)
	return st
}

func (p *parser) update(st *statement) *statement {
	st.kind, st.table = "UPDATE", p.ident()
	p.want("SET")
	st.set = p.assignments()
	p.conditions(st)
	p.returns(st)
	return st
}

func (p *parser) assignments() (set []assignment) {
	for {
		a := assignment{column: p.ident()}
		p.want("=")
		a.value = p.expr()
		set = append(set, a)
		if !p.is(",") {
			return set
		}
	}
}

// param returns the index of a parameter's argument.
func (p *parser) param(t token) int {
	if t.text == "" { // of MySQL
		p.params++
		return p.params - 1
	}
	n, _ := strconv.Atoi(t.text)
	return n - 1
}
