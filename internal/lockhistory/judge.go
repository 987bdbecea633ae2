package lockhistory

import (
	"fmt"
	"math"
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

// A Fault is what may be wrong with a history. A node that died at a time may have taken the
// latest grants away.
type Fault struct {
	Node string
	At   int64 // see Now

	// Skew is by how much the clocks may differ that tokens are taken from.
	Skew time.Duration
}

// Judge returns what is wrong with a history: no holds overlap, but for those
// that are told to have been lost, and these had been granted by the node that
// died, or had run out.
func Judge(spans []Span, f Fault) (wrong []string) {
	keys := make(map[string][]Span)
	for _, s := range spans {
		if s.Err != "" {
			continue
		}
		if s.Believed > 0 && s.Believed >= s.Deadline {
			wrong = append(wrong, fmt.Sprintf("believed in after its deadline: %+v", s))
		}
		if s.End != Lost {
			keys[s.Key] = append(keys[s.Key], s)
			continue
		}
		ranOut := s.Freed >= s.Deadline // its release may have been sent in time, and come late
		if onDead := s.Node == f.Node && s.Asked < f.At; !onDead && !ranOut {
			wrong = append(wrong, fmt.Sprintf("lost without a reason: %+v", s))
		}
	}
	for key, spans := range keys {
		if result := linearizable(spans, f.Skew); result != porcupine.Ok {
			wrong = append(wrong, fmt.Sprintf("the %d holds of %s are not linearizable: %v", len(spans), key, result))
		}
	}
	return wrong
}

// Overlaps counts the pairs of holds of one key that were believed in at the same
// time.
func Overlaps(spans []Span) (n int) {
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.Key == b.Key && a.Owner != "" && b.Owner != "" && a.Got < b.Believed && b.Got < a.Believed {
				n++
			}
		}
	}
	return n
}
