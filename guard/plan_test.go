package guard

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPlan: the keys are in one order, rows are gathered by key, and what the first layer is to
// remember is of one key.
func TestPlan(t *testing.T) {
	const request = "once:take:1"
	row := func(n int) any { return struct{ N int }{n} }
	o := &options{remember: time.Minute, protects: []any{row(1)}, also: []also{
		{"b", []any{row(2)}}, {request, nil}, {"a", nil}, {"b", []any{row(3)}},
	}}
	p := plan{main: "c"}
	o.remember = 0
	if err := p.fill(request, o); err != nil {
		t.Fatal(err)
	}
	if got, want := p.several(), []string{request, "a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("keys are %q, want %q", got, want)
	}
	if got := p.find("b").rows; len(got) != 2 {
		t.Errorf("rows of b are %v, want two", got)
	}
	if got := p.request(); got != request {
		t.Errorf("the key of the request is %q", got)
	}
	if got := p.protecting(request); got != "" {
		t.Errorf("%q protects rows that are named under the request", got)
	}
	if got := p.protecting("a"); got != "a" {
		t.Errorf("%q protects rows that are named under a", got)
	}
}

// TestPlanMarks: with a request its key is marked, and no other.
func TestPlanMarks(t *testing.T) {
	const request = "once:take:1"
	for _, test := range []struct {
		main, request string
		also          []string
		marked        []string
	}{
		{main: "a", marked: []string{"a"}},
		{main: "a", request: request, marked: []string{"a"}},
		{main: request, request: request, also: []string{"a", "b"}, marked: []string{request}},
	} {
		o := &options{remember: time.Minute}
		for _, key := range test.also {
			o.also = append(o.also, also{key: key})
		}
		p := plan{main: test.main}
		if err := p.fill(test.request, o); err != nil {
			t.Fatal(err)
		}
		var marked []string
		for _, k := range p.keys {
			if k.mark > 0 {
				marked = append(marked, k.key)
			}
		}
		if !slices.Equal(marked, test.marked) {
			t.Errorf("%+v: marked are %q", test, marked)
		}
	}
}

// TestPlanRefused: what no operation can ask for.
func TestPlanRefused(t *testing.T) {
	const request = "once:take:1"
	many := make([]also, maxKeys)
	for i := range many {
		many[i].key = strings.Repeat("k", i+2)
	}
	for name, test := range map[string]struct {
		request string
		options options
	}{
		"too many keys":               {"", options{also: many}},
		"rows under the request":      {request, options{also: []also{{request, []any{1}}}}},
		"marks with several keys":     {"", options{also: many[:1], remember: time.Minute}},
		"marks beside the request's":  {request, options{also: []also{{key: request}}, remember: time.Minute}},
		"rows of the request's by Do": {"k", options{protects: []any{1}}},
	} {
		p := plan{main: "k"}
		if err := p.fill(test.request, &test.options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
