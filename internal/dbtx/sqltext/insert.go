package sqltext

import (
	"strconv"
	"strings"
)

// An Insert is an INSERT of rows whose values are listed, and nothing else: no upsert, no
// INSERT IGNORE, no rows of a query.
type Insert struct {
	Table   string // with its schema if it is named with one
	Columns []string
	Rows    [][]Term // each has a Term for each column
	Marks   int      // how many arguments it has
}

// A Term is a value of an INSERT.
type Term struct {
	Arg     int    // the number of the argument, from 1; 0 if it is none
	Name    string // that the argument has, if any
	Literal any    // a string, an int64, or nil
	Unknown bool   // it is an expression
}

// ParseInsert describes an INSERT. It reports false for any other statement, and for one that
// it can't read, such as one whose rows a server takes or leaves, by an executable comment.
func ParseInsert(query string, g Grammar) (Insert, bool) {
	p := inserting{scanner: scanner{src: query, grammar: g}}
	var in Insert
	if g.isMySQL() && (strings.Contains(query, "/*!") || strings.Contains(query, "/*M!")) {
		return in, false
	}
	if !p.keyword("INSERT") || !p.keyword("INTO") && !g.isMySQL() {
		return in, false
	}
	if in.Table = p.table(); in.Table == "" || !p.punctuation('(') {
		return in, false
	}
	for {
		name := p.name()
		if name == "" {
			return in, false
		}
		in.Columns = append(in.Columns, name)
		if !p.punctuation(',') {
			break
		}
	}
	if !p.punctuation(')') || !p.keyword("VALUES") && !p.keyword("VALUE") {
		return in, false
	}
	for {
		row, ok := p.row()
		if !ok || len(row) != len(in.Columns) {
			return in, false
		}
		in.Rows = append(in.Rows, row)
		if !p.punctuation(',') {
			break
		}
	}
	in.Marks = p.marks
	return in, p.end()
}

// inserting reads an INSERT.
type inserting struct {
	scanner
	marks int // question marks so far, or the largest number of an argument
}

// space skips spaces and comments.
func (p *inserting) space() {
	for p.pos < len(p.src) {
		if c := p.src[p.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' && !p.skipComment() {
			return
		} else if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			p.pos++
		}
	}
}

// punctuation skips c, if it is next.
func (p *inserting) punctuation(c byte) bool {
	p.space()
	if p.pos >= len(p.src) || p.src[p.pos] != c {
		return false
	}
	p.pos++
	return true
}

// keyword skips a word, if it is next.
func (p *inserting) keyword(want string) bool {
	p.space()
	before := p.pos
	if strings.EqualFold(p.word(), want) {
		return true
	}
	p.pos = before
	return false
}

// name reads a name, "" if none is next.
func (p *inserting) name() string {
	p.space()
	if p.pos >= len(p.src) {
		return ""
	}
	c := p.src[p.pos]
	if c == '[' && p.grammar == Standard {
		start := p.pos + 1
		p.past("]", 1)
		return strings.TrimSuffix(p.src[start:p.pos], "]")
	}
	if c == '`' || c == '"' && p.grammar != MySQL {
		name := p.quoted(c)
		if p.pos < len(p.src) && p.src[p.pos] == c {
			return "" // a quote in a name
		}
		return name
	}
	return p.word()
}

// table reads the name of a table.
func (p *inserting) table() string {
	parts := []string{p.name()}
	for p.punctuation('.') {
		next := p.name()
		if next == "" {
			return ""
		}
		parts = append(parts, next)
	}
	return strings.Join(parts, ".")
}

// row reads the values of a row.
func (p *inserting) row() (row []Term, ok bool) {
	if !p.punctuation('(') {
		return nil, false
	}
	for {
		t, ok := p.term()
		if !ok {
			return nil, false
		}
		row = append(row, t)
		if p.punctuation(')') {
			return row, true
		}
		if !p.punctuation(',') {
			return nil, false
		}
	}
}

// term reads a value. What is more than one token is an expression.
func (p *inserting) term() (Term, bool) {
	p.space()
	first, ok := p.simple()
	if !ok {
		return Term{}, false
	}
	p.space()
	if p.pos < len(p.src) && (p.src[p.pos] == ',' || p.src[p.pos] == ')') {
		return first, true
	}
	return Term{Unknown: true}, p.rest()
}

// rest skips the rest of an expression.
func (p *inserting) rest() bool {
	for depth := 0; p.pos < len(p.src); {
		switch c := p.src[p.pos]; {
		case depth == 0 && (c == ',' || c == ')'):
			return true
		case c == '(' || c == '[':
			depth++
			p.pos++
		case c == ')' || c == ']':
			depth--
			p.pos++
		case c == ';':
			return false
		default:
			if _, ok := p.simple(); !ok {
				return false
			}
		}
	}
	return false
}

// simple reads one token.
func (p *inserting) simple() (Term, bool) {
	if p.pos >= len(p.src) {
		return Term{}, false
	}
	switch c := p.src[p.pos]; {
	case c == '\'' || c == '"' && p.grammar == MySQL:
		return p.text(c)
	case c == '"' || c == '`':
		p.quoted(c)
		return Term{Unknown: true}, true
	case c == '?':
		p.pos++
		return p.mark(p.digits(), true), true
	case c == '$' && p.grammar == Postgres:
		if p.skipDollars() {
			return Term{Unknown: true}, true
		}
		p.pos++
		return p.mark(p.digits(), false), true
	case (c == ':' || c == '@' || c == '$') && p.grammar == Standard:
		p.pos++
		name := p.word()
		return Term{Name: name, Unknown: name == ""}, true
	case p.skipComment():
		return Term{Unknown: true}, true
	case c == '-' || '0' <= c && c <= '9':
		return p.number(), true
	case isWordByte(c):
		if word := p.word(); strings.EqualFold(word, "NULL") {
			return Term{}, true
		}
		return Term{Unknown: true}, true
	}
	p.pos++
	return Term{Unknown: true}, true
}

// mark returns an argument that is marked by its number, or by its place if there is none.
func (p *inserting) mark(digits string, byPlace bool) Term {
	n, err := strconv.Atoi(digits)
	switch {
	case err == nil && n > 0 && n < 1<<16:
		p.marks = max(p.marks, n)
	case digits == "" && byPlace:
		p.marks++
		n = p.marks
	default:
		return Term{Unknown: true}
	}
	return Term{Arg: n}
}

func (p *inserting) digits() string {
	start := p.pos
	for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.src[start:p.pos]
}

// number reads an integer; a number of another kind is an expression.
func (p *inserting) number() Term {
	start := p.pos
	p.pos++
	p.digits()
	n, err := strconv.ParseInt(p.src[start:p.pos], 10, 64)
	if err != nil || p.pos < len(p.src) && (isWordByte(p.src[p.pos]) || p.src[p.pos] == '.') {
		return Term{Unknown: true}
	}
	return Term{Literal: n}
}

// text reads a string. One with escapes of anything but quotes and backslashes is not known, and
// one with more behind it is an expression.
func (p *inserting) text(quote byte) (Term, bool) {
	var b strings.Builder
	escapes, unknown := p.grammar.escapes(quote), false
	for p.pos++; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; {
		case c == '\\' && escapes:
			if p.pos++; p.pos < len(p.src) {
				unknown = unknown || !strings.ContainsRune(`'"\`, rune(p.src[p.pos]))
				b.WriteByte(p.src[p.pos])
			}
		case c != quote:
			b.WriteByte(c)
		case p.pos+1 < len(p.src) && p.src[p.pos+1] == quote:
			b.WriteByte(c)
			p.pos++
		case unknown:
			p.pos++
			return Term{Unknown: true}, true
		default:
			p.pos++
			return Term{Literal: b.String()}, true
		}
	}
	return Term{}, false
}

// end reports whether nothing follows but what an INSERT returns.
func (p *inserting) end() bool {
	if p.keyword("RETURNING") {
		return true
	}
	p.punctuation(';')
	p.space()
	return p.pos >= len(p.src)
}
