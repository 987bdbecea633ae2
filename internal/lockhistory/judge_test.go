package lockhistory

import (
	"fmt"
	"slices"
	"testing"
)

// The judge itself: it must see what is wrong.
func TestJudge(t *testing.T) {
	hold := func(token, from, to int64, change ...func(*Span)) Span {
		s := Span{Key: "k", Owner: fmt.Sprint(token), Node: "n", Token: token, End: Released,
			Asked: from - 2, Got: from, Believed: to, Deadline: to + 100, Done: to, Freed: to + 2}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	ended := func(how string) func(*Span) { return func(s *Span) { s.End = how } }
	of := func(owner string) func(*Span) { return func(s *Span) { s.Owner = owner } }
	node := func(n string) func(*Span) { return func(s *Span) { s.Node = n } }
	faults := []Fault{{Node: "n", Begin: 31, End: 50}, {Node: "m", Begin: 500, End: 600}}
	for name, tt := range map[string]struct {
		spans []Span
		wrong int
	}{
		"one after the other":                {[]Span{hold(1, 10, 20), hold(2, 25, 30)}, 0},
		"requests overlap":                   {[]Span{hold(1, 10, 20), hold(2, 21, 30)}, 0},
		"holds overlap":                      {[]Span{hold(1, 10, 20), hold(2, 15, 30)}, 1},
		"other keys":                         {[]Span{hold(1, 10, 20), hold(2, 15, 30, func(s *Span) { s.Key = "l" })}, 0},
		"tokens fall":                        {[]Span{hold(2, 10, 20), hold(1, 25, 30)}, 1},
		"lost with the node":                 {[]Span{hold(1, 10, 70, ended(Lost)), hold(2, 60, 80, node("o"))}, 0},
		"lost with another node":             {[]Span{hold(1, 10, 70, ended(Lost), node("o"))}, 1},
		"lost before the node":               {[]Span{hold(1, 10, 25, ended(Lost))}, 1},
		"lost while the node forgets":        {[]Span{hold(1, 42, 45, ended(Lost))}, 0},
		"lost with the node of another time": {[]Span{hold(1, 10, 70, ended(Lost), node("m"))}, 1},
		"lost though granted later":          {[]Span{hold(1, 60, 70, ended(Lost))}, 1},
		"ran out":                            {[]Span{hold(1, 60, 70, ended(Lost), func(s *Span) { s.Believed, s.Deadline = 68, 69 })}, 0},
		"believed after the deadline":        {[]Span{hold(1, 10, 20, func(s *Span) { s.Deadline = 19 })}, 1},
		"freed later":                        {[]Span{hold(1, 10, 20, ended(Unanswered)), hold(2, 40, 50)}, 0},
		"handed over, and lost by then":      {[]Span{hold(1, 10, 30, of("a")), hold(2, 35, 40, of("a"), ended(Lost)), hold(2048, 15, 38)}, 0},
		"handed over after the node died":    {[]Span{hold(1, 10, 30, of("a")), hold(2, 60, 65, of("a"), ended(Lost))}, 0},
		"lost by a caller before":            {[]Span{hold(1, 10, 30, of("a"), ended(Lost)), hold(2, 35, 60, of("a")), hold(2048, 40, 70)}, 1},
		"handed over, lost by another owner": {[]Span{hold(1, 10, 30, of("a")), hold(2, 35, 40, of("b"), ended(Lost)), hold(2048, 15, 38)}, 1},
		"not lost, but another has it":       {[]Span{hold(1, 10, 70), hold(2, 60, 80, node("o"))}, 1},
		"not freed, but another has it":      {[]Span{hold(1, 10, 70, ended(Unanswered)), hold(2, 60, 80)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := Judge(tt.spans, faults...); len(wrong) != tt.wrong {
				t.Errorf("%d things are wrong, want %d: %v", len(wrong), tt.wrong, wrong)
			}
			slices.Reverse(tt.spans)
			if wrong := Judge(tt.spans, faults...); len(wrong) != tt.wrong {
				t.Errorf("in another order, %d things are wrong, want %d: %v", len(wrong), tt.wrong, wrong)
			}
		})
	}
}
