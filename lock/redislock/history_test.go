package redislock_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// mutex is what a lock is to its callers: it is taken when nobody has it, with a
// greater token each time, and freed by the one who has it.
var mutex = porcupine.Model{
	Init: func() any { return mutexState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(mutexState), input.(mutexInput)
		if in.free {
			return s.held && s.token == in.token, mutexState{token: s.token}
		}
		return !s.held && in.token > s.token, mutexState{held: true, token: in.token}
	},
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
func linearizable(spans []span) porcupine.CheckResult {
	var ops []porcupine.Operation
	for i, s := range spans {
		freed := s.Freed
		if s.End == unanswered {
			freed = math.MaxInt64
		}
		ops = append(ops,
			porcupine.Operation{ClientId: i, Input: mutexInput{false, s.Token}, Call: s.Asked, Return: s.Got},
			porcupine.Operation{ClientId: i, Input: mutexInput{true, s.Token}, Call: s.Done, Return: freed})
	}
	return porcupine.CheckOperationsTimeout(mutex, ops, time.Minute)
}

// A fault is what may have taken grants away: the node died at a time, and its
// replica may not have had the latest.
type fault struct {
	node string
	at   int64
}

// judge returns what is wrong with a history: no holds overlap, but for those
// that are told to have been lost, and these had been granted by the node that
// died, or had run out.
func judge(spans []span, f fault) (wrong []string) {
	keys := make(map[string][]span)
	for _, s := range spans {
		if s.Err != "" {
			continue
		}
		if s.Believed > 0 && s.Believed >= s.Deadline {
			wrong = append(wrong, fmt.Sprintf("believed in after its deadline: %+v", s))
		}
		if s.End != lost {
			keys[s.Key] = append(keys[s.Key], s)
			continue
		}
		ranOut := s.Done >= s.Deadline
		if onDead := s.Node == f.node && s.Asked < f.at; !onDead && !ranOut {
			wrong = append(wrong, fmt.Sprintf("lost without a reason: %+v", s))
		}
	}
	for key, spans := range keys {
		if result := linearizable(spans); result != porcupine.Ok {
			wrong = append(wrong, fmt.Sprintf("the %d holds of %s are not linearizable: %v", len(spans), key, result))
		}
	}
	return wrong
}

// overlaps counts the pairs of holds of one key that were believed in at the same
// time.
func overlaps(spans []span) (n int) {
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.Key == b.Key && a.Owner != "" && b.Owner != "" && a.Got < b.Believed && b.Got < a.Believed {
				n++
			}
		}
	}
	return n
}

// The judge itself: it must see what is wrong.
func TestJudge(t *testing.T) {
	hold := func(token, from, to int64, change ...func(*span)) span {
		s := span{Key: "k", Owner: fmt.Sprint(token), Node: "n", Token: token, End: released,
			Asked: from - 2, Got: from, Believed: to, Deadline: to + 100, Done: to, Freed: to + 2}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	ended := func(how string) func(*span) { return func(s *span) { s.End = how } }
	node := func(n string) func(*span) { return func(s *span) { s.Node = n } }
	f := fault{node: "n", at: 50}
	for name, tt := range map[string]struct {
		spans []span
		wrong int
	}{
		"one after the other":           {[]span{hold(1, 10, 20), hold(2, 25, 30)}, 0},
		"requests overlap":              {[]span{hold(1, 10, 20), hold(2, 21, 30)}, 0},
		"holds overlap":                 {[]span{hold(1, 10, 20), hold(2, 15, 30)}, 1},
		"other keys":                    {[]span{hold(1, 10, 20), hold(2, 15, 30, func(s *span) { s.Key = "l" })}, 0},
		"tokens fall":                   {[]span{hold(2, 10, 20), hold(1, 25, 30)}, 1},
		"lost with the node":            {[]span{hold(1, 10, 70, ended(lost)), hold(2, 60, 80, node("o"))}, 0},
		"lost with another node":        {[]span{hold(1, 10, 70, ended(lost), node("o"))}, 1},
		"lost though granted later":     {[]span{hold(1, 60, 70, ended(lost))}, 1},
		"ran out":                       {[]span{hold(1, 60, 70, ended(lost), func(s *span) { s.Believed, s.Deadline = 68, 69 })}, 0},
		"believed after the deadline":   {[]span{hold(1, 10, 20, func(s *span) { s.Deadline = 19 })}, 1},
		"freed later":                   {[]span{hold(1, 10, 20, ended(unanswered)), hold(2, 40, 50)}, 0},
		"not lost, but another has it":  {[]span{hold(1, 10, 70), hold(2, 60, 80, node("o"))}, 1},
		"not freed, but another has it": {[]span{hold(1, 10, 70, ended(unanswered)), hold(2, 60, 80)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := judge(tt.spans, f); len(wrong) != tt.wrong {
				t.Errorf("%d things are wrong, want %d: %v", len(wrong), tt.wrong, wrong)
			}
			slices.Reverse(tt.spans)
			if wrong := judge(tt.spans, f); len(wrong) != tt.wrong {
				t.Errorf("in another order, %d things are wrong, want %d: %v", len(wrong), tt.wrong, wrong)
			}
		})
	}
}
