package simdb

import (
	"strconv"
	"strings"
)

// An expr is an expression of a statement.
type expr struct {
	op    string // a sign, a word, "column", "given", "param", "value" or "call"
	name  string // of a column or function, in lower case
	args  []*expr
	value any
	n     int // of a parameter
	query *statement
}

func (p *parser) expr() *expr {
	left := p.and()
	for p.is("OR") {
		left = &expr{op: "OR", args: []*expr{left, p.and()}}
	}
	return left
}

func (p *parser) and() *expr {
	left := p.not()
	for p.is("AND") {
		left = &expr{op: "AND", args: []*expr{left, p.not()}}
	}
	return left
}

func (p *parser) not() *expr {
	if p.is("NOT") {
		return &expr{op: "NOT", args: []*expr{p.not()}}
	}
	return p.comparison()
}

func (p *parser) comparison() *expr {
	left := p.sum()
	for _, sign := range []string{"<=>", "<=", ">=", "<>", "!=", "=", "<", ">"} {
		if p.is(sign) {
			return &expr{op: sign, args: []*expr{left, p.sum()}}
		}
	}
	not := p.is("NOT")
	e := &expr{args: []*expr{left}}
	switch {
	case p.is("IN", "(", "SELECT"):
		e.op, e.query = "IN", p.selection()
		p.want(")")
	case p.is("IN"):
		e.op = "IN"
		p.list(func() { e.args = append(e.args, p.sum()) })
	case p.is("BETWEEN"):
		low := p.sum()
		p.want("AND")
		e.op, e.args = "BETWEEN", append(e.args, low, p.sum())
	case p.is("IS", "NOT", "DISTINCT", "FROM"):
		return &expr{op: "<=>", args: []*expr{left, p.sum()}}
	case p.is("IS", "NOT", "NULL"):
		return &expr{op: "NOT", args: []*expr{{op: "NULL", args: e.args}}}
	case p.is("IS", "NULL"):
		e.op = "NULL"
	default:
		return left
	}
	if not {
		return &expr{op: "NOT", args: []*expr{e}}
	}
	return e
}

func (p *parser) sum() *expr {
	left := p.product()
	for {
		switch {
		case p.is("+"):
			left = &expr{op: "+", args: []*expr{left, p.product()}}
		case p.is("-"):
			left = &expr{op: "-", args: []*expr{left, p.product()}}
		default:
			return left
		}
	}
}

func (p *parser) product() *expr {
	left := p.suffixed()
	for {
		switch {
		case p.is("*"):
			left = &expr{op: "*", args: []*expr{left, p.suffixed()}}
		case p.is("DIV"):
			left = &expr{op: "DIV", args: []*expr{left, p.suffixed()}}
		default:
			return left
		}
	}
}

// suffixed reads a value with its casts, which change nothing but a number to a text.
func (p *parser) suffixed() *expr {
	e := p.primary()
	for {
		switch {
		case p.is("::"):
			e = &expr{op: "cast", name: strings.ToLower(p.next().name), args: []*expr{e}}
		case p.is("COLLATE"):
			p.next()
		default:
			return e
		}
	}
}

func (p *parser) primary() *expr {
	switch t := p.next(); {
	case t.kind == 'n':
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			p.fail()
		}
		return &expr{op: "value", value: n}
	case t.kind == 's':
		return &expr{op: "value", value: t.text}
	case t.kind == 'p':
		return &expr{op: "param", n: p.param(t)}
	case t.kind == 'o' && t.text == "(":
		e := p.expr()
		p.want(")")
		return e
	case t.kind == 'w' || t.kind == 'q':
		p.at--
		return p.word()
	}
	p.at--
	p.fail()
	return nil
}

// word reads what begins with a word: a constant, a call or a column.
func (p *parser) word() *expr {
	switch {
	case p.is("NULL"):
		return &expr{op: "value"}
	case p.is("TRUE"):
		return &expr{op: "value", value: true}
	case p.is("FALSE"):
		return &expr{op: "value", value: false}
	case p.is("DEFAULT"):
		return &expr{op: "default"}
	case p.is("CURRENT_TIMESTAMP", "("), p.is("UTC_TIMESTAMP", "("), p.is("NOW", "("):
		if !p.is(")") {
			p.next()
			p.want(")")
		}
		return &expr{op: "now"}
	case p.is("CLOCK_TIMESTAMP", "(", ")"), p.is("CURRENT_TIMESTAMP"):
		return &expr{op: "now"}
	case p.is("TIMESTAMPDIFF", "(", "MICROSECOND", ","): // since 1970
		p.next()
		p.want(",")
		e := p.expr()
		p.want(")")
		return &expr{op: "micros", args: []*expr{e}}
	case p.is("EXTRACT", "(", "EPOCH", "FROM"), p.is("UNIX_TIMESTAMP", "("):
		e := p.expr()
		p.want(")")
		return &expr{op: "epoch", args: []*expr{e}}
	case p.is("CAST", "("):
		e := p.expr()
		p.want("AS")
		kind := strings.ToLower(p.next().name)
		p.want(")")
		return &expr{op: "cast", name: kind, args: []*expr{e}}
	case p.is("EXISTS", "(", "SELECT"):
		e := &expr{op: "EXISTS", query: p.selection()}
		p.want(")")
		return e
	case p.is("COUNT", "("):
		if !p.is("*") {
			p.next()
		}
		p.want(")")
		return &expr{op: "count", name: "count"}
	case p.is("COALESCE"):
		e := &expr{op: "coalesce"}
		p.list(func() { e.args = append(e.args, p.expr()) })
		return e
	case p.is("VALUES", "("):
		e := &expr{op: "given", name: p.ident()}
		p.want(")")
		return e
	case p.is("CASE", "WHEN"):
		e := &expr{op: "case", args: []*expr{p.expr()}}
		p.want("THEN")
		e.args = append(e.args, p.expr())
		p.want("ELSE")
		e.args = append(e.args, p.expr())
		p.want("END")
		return e
	}
	op := "column"
	if strings.EqualFold(p.peek().name, "excluded") {
		op = "given"
	}
	name := p.ident()
	if p.is("(") {
		p.fail()
	}
	return &expr{op: op, name: name}
}
