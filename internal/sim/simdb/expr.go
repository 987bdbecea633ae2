package simdb

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An expr is an expression of a statement.
type expr struct {
	op    string // an operator, a function, "column", "given", "param", "value" or "count"
	of    string // the table of a column, if it is named
	name  string // of a column
	value any
	n     int // of a parameter
	args  []*expr
}

// binds is how tightly an operator binds.
var binds = map[string]int{"OR": 1, "AND": 2, "=": 3, ">": 3, "<": 3, "<=": 3, "<>": 3, "IN": 3, "BETWEEN": 3, "+": 4, "-": 4}

// expr reads an expression of operators that bind more tightly than above.
func (p *parser) expr(above int) *expr {
	var left *expr
	if p.is("NOT") {
		left = &expr{op: "NOT", args: []*expr{p.expr(2)}}
	} else {
		left = p.operand()
	}
	for {
		switch {
		case above < 3 && p.is("IS NULL"):
			left = &expr{op: "IS NULL", args: []*expr{left}}
			continue
		case above < 3 && p.is("NOT IN"):
			in := &expr{op: "IN", args: []*expr{left}}
			p.list(func() { in.args = append(in.args, p.expr(0)) })
			left = &expr{op: "NOT", args: []*expr{in}}
			continue
		}
		op := p.peek().text
		bind := binds[op]
		if bind <= above || !p.is(op) {
			return left
		}
		left = &expr{op: op, args: []*expr{left}}
		switch {
		case op == "BETWEEN":
			left.args = append(left.args, p.expr(bind))
			p.want("AND")
			left.args = append(left.args, p.expr(bind))
		case op == "IN" && p.is("( SELECT ID FROM DUE )"):
			left.op = "IN due"
		case op == "IN":
			p.list(func() { left.args = append(left.args, p.expr(0)) })
		default:
			left.args = append(left.args, p.expr(bind))
		}
	}
}

// The outbox's clock in milliseconds since 1970, as MariaDB and PostgreSQL spell it.
const (
	clockMy = "( TIMESTAMPDIFF ( MICROSECOND , '1970-01-01' , UTC_TIMESTAMP ( 6 ) ) DIV 1000 )"
	clockPg = "CAST ( EXTRACT ( EPOCH FROM CLOCK_TIMESTAMP ( ) ) * 1000 AS BIGINT )"
)

// The age of a claim in seconds, as MariaDB and PostgreSQL spell it.
const (
	ageMy = "( TIMESTAMPDIFF ( MICROSECOND , '1970-01-01' , UTC_TIMESTAMP ( 6 ) ) DIV 1000000 ) - UNIX_TIMESTAMP ( CREATED_AT )"
	agePg = "CAST ( EXTRACT ( EPOCH FROM CLOCK_TIMESTAMP ( ) ) * 1 AS BIGINT ) - EXTRACT ( EPOCH FROM CREATED_AT )"
)

func (p *parser) operand() *expr {
	switch {
	case p.is(ageMy), p.is(agePg):
		return &expr{op: "age", args: []*expr{{op: "column", name: "created_at"}}}
	case p.is(clockMy):
		return &expr{op: "clock"}
	case p.is(clockPg):
		return &expr{op: "clock rounded"}
	case p.is("CURRENT_TIMESTAMP ( 6 )"), p.is("CLOCK_TIMESTAMP ( )"):
		return &expr{op: "now"}
	case p.is("UNIX_TIMESTAMP ( ) -"):
		return &expr{op: "-", args: []*expr{{op: "whole now"}, {op: "seconds", args: []*expr{p.operand()}}}}
	case p.is("UNIX_TIMESTAMP ("):
		e := p.operand() // a moment is a number here, too
		p.want(")")
		return e
	case p.is("INTERVAL"):
		e := &expr{op: "seconds", args: []*expr{p.operand()}}
		p.want("SECOND")
		return e
	case p.is("MAKE_INTERVAL ( SECS = >"):
		e := &expr{op: "seconds", args: []*expr{p.operand()}}
		p.want(")")
		return e
	case p.is("EXISTS ( SELECT 1 FROM BELAY_ONCE WHERE BELAY_ONCE . REQUEST = BELAY_ANSWER . REQUEST )"):
		return &expr{op: "has claim"}
	case p.is("( SELECT"): // of no table
		e := p.expr(0)
		p.want(")")
		return e
	case p.is("("):
		e := p.expr(0)
		p.want(")")
		return e
	case p.is("CASE WHEN"):
		e := &expr{op: "CASE", args: []*expr{p.expr(0)}}
		p.want("THEN")
		e.args = append(e.args, p.expr(0))
		p.want("ELSE")
		e.args = append(e.args, p.expr(0))
		p.want("END")
		return e
	case p.is("COUNT ( * )"):
		return &expr{op: "count", name: "count"}
	case p.is("COALESCE"):
		e := &expr{op: "COALESCE"}
		p.list(func() { e.args = append(e.args, p.expr(0)) })
		return e
	case p.is("VALUES ("):
		e := &expr{op: "given", name: p.ident()}
		p.want(")")
		return e
	}
	switch t := p.peek(); t.kind {
	case 'n':
		n, err := strconv.ParseInt(p.next().text, 10, 64)
		if err != nil {
			p.fail()
		}
		return &expr{op: "value", value: n}
	case 's':
		text := p.next().text
		return &expr{op: "value", value: strings.ReplaceAll(text[1:len(text)-1], "''", "'")}
	case 'p':
		p.next()
		n, err := strconv.Atoi(t.text[1:])
		if p.params++; err != nil { // that of MariaDB has no number
			n = p.params
		}
		return &expr{op: "param", n: n - 1}
	}
	of, name := p.qualified()
	if of == "excluded" {
		return &expr{op: "given", name: name}
	}
	return &expr{op: "column", of: of, name: name}
}

// An env is what an expression is evaluated in.
type env struct {
	session    *session
	table      *table
	row, given []any // what columns are, and those that an upsert was given
	args       []any
	due        []any // ids that WITH has found
	other      *other
	now        int64 // by the server's clock, in microseconds
}

// of returns an env for a row.
func (v env) of(row []any) *env {
	v.row = row
	return &v
}

// eval panics with an unknown where nothing is compared with the real servers.
func (e *expr) eval(v *env) any {
	switch e.op {
	case "value":
		return e.value
	case "param":
		return v.args[e.n]
	case "column":
		if o := v.other; o != nil && o.alias == e.of {
			return o.value(e.name)
		}
		return v.row[v.table.column(e.name)]
	case "given":
		return v.given[v.table.column(e.name)]
	case "number":
		return v.session.number()
	case "pid":
		return v.session.id
	case "start":
		return v.session.db.run()
	case "now":
		return v.now
	case "whole now":
		return v.now - v.now%1e6
	case "clock":
		return time.Now().UnixMilli()
	case "clock rounded":
		return time.Now().Add(500 * time.Microsecond).UnixMilli()
	case "AND":
		return e.args[0].true(v) && e.args[1].true(v)
	case "OR":
		return e.args[0].true(v) || e.args[1].true(v)
	case "IS NULL":
		return e.args[0].eval(v) == nil
	case "CASE":
		if e.args[0].true(v) {
			return e.args[1].eval(v)
		}
		return e.args[2].eval(v)
	case "NOT":
		return !e.args[0].true(v) // of NULL, too: no statement here has such
	}
	return e.apply(v)
}

// true reports whether a condition is fulfilled, as NULL is not.
func (e *expr) true(v *env) bool {
	fulfilled, _ := e.eval(v).(bool)
	return fulfilled
}

func (e *expr) apply(v *env) any {
	args := make([]any, len(e.args))
	for i, a := range e.args {
		args[i] = a.eval(v)
	}
	switch {
	case e.op == "COALESCE":
		return cmp.Or(args...)
	case e.op == "IN":
		return args[0] != nil && among(args[0], args[1:])
	case e.op == "IN due":
		return among(args[0], v.due)
	case slices.Contains(args, nil):
		return nil
	}
	switch e.op {
	case "=":
		return compare(args[0], args[1]) == 0
	case ">":
		return compare(args[0], args[1]) > 0
	case "<":
		return compare(args[0], args[1]) < 0
	case "<=":
		return compare(args[0], args[1]) <= 0
	case "<>":
		return compare(args[0], args[1]) != 0
	case "age":
		at, ok := args[0].(int64)
		if !ok {
			panic(unknown(fmt.Sprintf("the age of a %T", args[0])))
		}
		return (v.now - at) / 1e6
	case "seconds":
		n, ok := args[0].(float64)
		if !ok {
			panic(unknown(fmt.Sprintf("an interval of a %T", args[0])))
		}
		return int64(n * 1e6)
	case "BETWEEN":
		return compare(args[0], args[1]) >= 0 && compare(args[0], args[2]) <= 0
	case "+", "-":
		a, okA := args[0].(int64)
		b, okB := args[1].(int64)
		switch {
		case !okA || !okB:
		case e.op == "-":
			return a - b
		default:
			return a + b
		}
	}
	panic(unknown("operation " + e.op))
}

func among(v any, values []any) bool {
	return slices.ContainsFunc(values, func(o any) bool { return compare(v, o) == 0 })
}

// compare orders values as a column does; NULL is the least.
func compare(a, b any) int {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b)
		}
	case nil:
		if b == nil {
			return 0
		}
		return -1
	}
	if b == nil {
		return 1
	}
	panic(unknown(fmt.Sprintf("comparison of %T and %T", a, b)))
}
