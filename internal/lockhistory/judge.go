package lockhistory

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// mutex is what a lock is to its callers: it is taken when nobody has it, with a
// greater token each time but for the skew of clocks, and freed by the one who has it.
func mutex(skew time.Duration) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return mutexState{} },
		Step: func(state, input, _ any) (bool, any) {
			s, in := state.(mutexState), input.(mutexInput)
			if in.free {
				return s.held && s.token == in.token, mutexState{token: s.token}
			}
			return !s.held && in.token > s.token-1024*skew.Microseconds(), mutexState{held: true, token: in.token}
		},
	}
}

type mutexState struct {
	held  bool
	token int64 // of the present or the last holder
}

type mutexInput struct {
	free  bool
	token int64
}

// linearizable reports whether the holds of a key can be put into an order in
// which they do not overlap. A release that was not answered may have happened
// at any time after.
func linearizable(spans []Span, skew time.Duration) porcupine.CheckResult {
	var ops []porcupine.Operation
	for i, s := range spans {
		freed := s.Freed
		if s.End == Unanswered {
			freed = math.MaxInt64
		}
		ops = append(ops,
			porcupine.Operation{ClientId: i, Input: mutexInput{false, s.Token}, Call: s.Asked, Return: s.Got},
			porcupine.Operation{ClientId: i, Input: mutexInput{true, s.Token}, Call: s.Done, Return: freed})
	}
	return porcupine.CheckOperationsTimeout(mutex(skew), ops, time.Minute)
}

// A Fault is what may be wrong with a history. Between Begin and End the node may forget grants:
// those that were asked for before End, and lost after Begin.
type Fault struct {
	Node       string
	Begin, End int64 // see Now

	// Skew is by how much the clocks may differ that tokens are taken from.
	Skew time.Duration
}

// takes reports whether a grant that was asked for and lost at these times may be lost by the Fault.
func (f Fault) takes(node string, asked, lost int64) bool {
	return node == f.Node && asked < f.End && lost > f.Begin
}

// Judge returns what is wrong with a history: no holds overlap, but for those that are told to have
// been lost, and these were taken away by a fault, or had run out. A loss is that of the grant,
// which callers of one process may have handed over: any of them up to the one that is told may
// have worked without a lock.
func Judge(spans []Span, faults ...Fault) (wrong []string) {
	var skew time.Duration
	for _, f := range faults {
		skew = max(skew, f.Skew)
	}
	keys, grants := make(map[string][]Span), grantsOf(spans)
	for _, s := range spans {
		if s.Err != "" {
			continue
		}
		if s.Believed > 0 && s.Believed >= s.Deadline {
			wrong = append(wrong, fmt.Sprintf("believed in after its deadline: %+v", s))
		}
		g := grants[s.Owner]
		if s.End != Lost {
			if s.Token > g.lost {
				keys[s.Key] = append(keys[s.Key], s)
			}
			continue
		}
		ranOut := s.Freed >= s.Deadline // its release may have been sent in time, and come late
		taken := slices.ContainsFunc(faults, func(f Fault) bool { return f.takes(s.Node, g.asked, s.Freed) })
		if !taken && !ranOut {
			wrong = append(wrong, fmt.Sprintf("lost without a reason: %+v", s))
		}
	}
	for key, spans := range keys {
		if result := linearizable(spans, skew); result != porcupine.Ok {
			wrong = append(wrong, fmt.Sprintf("the %d holds of %s are not linearizable: %v%s", len(spans), key, result, listed(overlapping(spans))))
		}
	}
	return wrong
}

// A grant is one of the engine's: the holds with one owner.
type grant struct {
	asked int64 // by the first of its holders
	lost  int64 // the token of the last holder that was told of a loss; 0 = none was
}

func grantsOf(spans []Span) map[string]grant {
	grants := make(map[string]grant)
	for _, s := range spans {
		if s.Err != "" {
			continue
		}
		g, known := grants[s.Owner]
		if !known {
			g.asked = s.Asked
		}
		g.asked = min(g.asked, s.Asked)
		if s.End == Lost {
			g.lost = max(g.lost, s.Token)
		}
		grants[s.Owner] = g
	}
	return grants
}

// Overlaps counts the pairs of holds of one key that were believed in at the same
// time.
func Overlaps(spans []Span) int { return len(overlapping(spans)) }

// overlapping returns the pairs of holds of one key that were believed in at the same time.
func overlapping(spans []Span) (pairs [][2]Span) {
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.Key == b.Key && a.Owner != "" && b.Owner != "" && a.Got < b.Believed && b.Got < a.Believed {
				pairs = append(pairs, [2]Span{a, b})
			}
		}
	}
	return pairs
}

// listed returns the first of the pairs, one in two lines.
func listed(pairs [][2]Span) string {
	var b strings.Builder
	for _, p := range pairs[:min(3, len(pairs))] {
		fmt.Fprintf(&b, "\n\t%+v overlaps\n\t%+v", p[0], p[1])
	}
	return b.String()
}
