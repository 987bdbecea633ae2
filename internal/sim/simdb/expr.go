package simdb

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
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

// constant reports whether an expression has no column and no query in it.
func (e *expr) constant() bool {
	return e.op != "column" && e.op != "given" && e.query == nil && !slices.ContainsFunc(e.args, func(a *expr) bool { return !a.constant() })
}

// An env is what an expression is evaluated in.
type env struct {
	table      *table
	row, given []any
	args       []any
	query      func(*statement) ([]any, error) // the first column of a subquery
}

func (v *env) column(e *expr) (any, error) {
	values := v.row
	if e.op == "given" {
		values = v.given
	}
	if v.table != nil && values != nil {
		if n := v.table.column(e.name); n >= 0 {
			return values[n], nil
		}
	}
	return nil, fmt.Errorf("no column %s", e.name)
}

func (e *expr) eval(v *env) (any, error) {
	switch e.op {
	case "value":
		return e.value, nil
	case "param":
		if e.n >= len(v.args) {
			return nil, fmt.Errorf("no argument %d", e.n+1)
		}
		return v.args[e.n], nil
	case "column", "given":
		return v.column(e)
	case "now":
		return time.Now(), nil
	case "AND", "OR":
		left, err := e.args[0].eval(v)
		if err != nil || truth(left) == (e.op == "OR") {
			return left, err
		}
		return e.args[1].eval(v)
	case "case":
		when, err := e.args[0].eval(v)
		if err == nil && truth(when) {
			return e.args[1].eval(v)
		}
		return e.args[2].eval(v)
	case "EXISTS":
		found, err := v.query(e.query)
		return len(found) > 0, err
	}
	args := make([]any, len(e.args))
	for i, a := range e.args {
		var err error
		if args[i], err = a.eval(v); err != nil {
			return nil, err
		}
	}
	if e.query != nil { // IN
		found, err := v.query(e.query)
		return slices.ContainsFunc(found, func(f any) bool { return compare(args[0], f) == 0 }), err
	}
	return e.apply(args)
}

func (e *expr) apply(args []any) (any, error) {
	switch e.op {
	case "NOT":
		return !truth(args[0]), nil // of NULL, too: no statement here has such
	case "NULL":
		return args[0] == nil, nil
	case "<=>":
		return compare(args[0], args[1]) == 0, nil
	case "coalesce":
		return cmp.Or(args...), nil
	case "IN":
		return args[0] != nil && slices.ContainsFunc(args[1:], func(a any) bool { return compare(args[0], a) == 0 }), nil
	}
	if slices.Contains(args, nil) {
		return nil, nil
	}
	switch e.op {
	case "BETWEEN":
		return compare(args[0], args[1]) >= 0 && compare(args[0], args[2]) <= 0, nil
	case "=":
		return compare(args[0], args[1]) == 0, nil
	case "<>", "!=":
		return compare(args[0], args[1]) != 0, nil
	case "<":
		return compare(args[0], args[1]) < 0, nil
	case "<=":
		return compare(args[0], args[1]) <= 0, nil
	case ">":
		return compare(args[0], args[1]) > 0, nil
	case ">=":
		return compare(args[0], args[1]) >= 0, nil
	case "micros":
		return args[0].(time.Time).UnixMicro(), nil
	case "epoch":
		return float64(args[0].(time.Time).UnixMicro()) / 1e6, nil
	case "cast":
		return cast(e.name, args[0]), nil
	case "+", "-", "*", "DIV":
		return arithmetic(e.op, args[0], args[1])
	}
	return nil, fmt.Errorf("unknown operation %s", e.op)
}

func cast(kind string, v any) any {
	switch f, isFloat := v.(float64); {
	case kind == "bigint" && isFloat:
		return int64(math.Round(f))
	case kind == "text", kind == "binary", kind == "varchar":
		return fmt.Sprint(v)
	}
	return v
}

func arithmetic(op string, a, b any) (any, error) {
	x, okX := a.(int64)
	y, okY := b.(int64)
	if f, ok := a.(float64); ok && okY && op == "*" {
		return f * float64(y), nil
	}
	if !okX || !okY {
		return nil, fmt.Errorf("%T %s %T", a, op, b)
	}
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	}
	return x / y, nil
}

func truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case int64:
		return v != 0
	}
	return false
}

// compare orders values as a column does; NULL is the least.
func compare(a, b any) int {
	switch a := a.(type) {
	case nil:
		if b == nil {
			return 0
		}
		return -1
	case int64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, b)
		case float64:
			return cmp.Compare(float64(a), b)
		case bool:
			return cmp.Compare(a, number(b))
		}
	case bool:
		return compare(number(a), b)
	case float64:
		if b, ok := b.(float64); ok {
			return cmp.Compare(a, b)
		}
	case time.Time:
		if b, ok := b.(time.Time); ok {
			return a.Compare(b)
		}
	}
	if b == nil {
		return 1
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
