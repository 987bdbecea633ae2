package simdb

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

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
