package call

import (
	"fmt"
	"strings"
)

// A Step is one action of one process.
type Step struct{ action, process uint8 }

func (s Step) String() string {
	says := actions[s.action].says
	if !strings.Contains(says, "%s") {
		return says
	}
	return fmt.Sprintf(says, string('A'+rune(s.process)))
}

// A Story is how a state is reached.
type Story []Step

func (s Story) String() string {
	lines := make([]string, len(s))
	for n, step := range s {
		lines[n] = fmt.Sprintf("%2d. %s", n+1, step)
	}
	return strings.Join(lines, "\n")
}

// A Report is what a search has found.
type Report struct {
	States    int
	Violation Story // the shortest
	Broken    []int
	Happened  map[string]bool
}

type visited struct {
	State
	from int32
	step Step
}

// Search goes through all states, the nearest first, up to the first that breaks an invariant: 0 is
// for any.
func Search(cfg *Config, invariant int) Report {
	r := Report{Happened: make(map[string]bool)}
	all := []visited{{State: start(cfg), from: -1}}
	seen := map[State]bool{all[0].State: true}
	for at := 0; at < len(all); at++ {
		moved := false
		steps(cfg, all[at].State, func(step Step, next State) {
			moved = true
			r.Happened[actions[step.action].says] = true
			if !seen[next] {
				seen[next] = true
				all = append(all, visited{next, int32(at), step}) //nolint:gosec // a few millions
			}
		})
		if s := &all[at].State; !moved && !ends(cfg, *s) {
			s.broke(10)
		}
		if s := all[at].State; s.breaks(invariant) {
			r.Violation, r.Broken = path(all, at), s.broken()
			break
		}
	}
	r.States = len(all)
	return r
}

func (s *State) broken() (numbers []int) {
	for n := range Invariants {
		if n > 0 && s.breaks(n) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func path(all []visited, at int) (story Story) {
	for ; at > 0; at = int(all[at].from) {
		story = append(Story{all[at].step}, story...)
	}
	return story
}

// steps calls f with each state that s can become.
func steps(cfg *Config, s State, f func(Step, State)) {
	if s.Ended {
		return
	}
	for k := range actions {
		a := &actions[k]
		for i := range processes {
			if a.world && i > 0 || !a.world && a.at != dead && s.Processes[i].PC != a.at {
				continue
			}
			next := s
			if !a.do(cfg, &next, i) {
				continue
			}
			next.check()
			f(Step{uint8(k), uint8(i)}, next)
		}
	}
}

// ends reports whether a state in which nothing happens is an end that I10 allows: one more repeat
// of the same content, to which nothing happens, settles what is pending, or finds it undecided.
func ends(cfg *Config, s State) bool {
	if !s.P || s.Ended {
		return true
	}
	s.Lease, s.Lock, s.Tx1 = false, 0, 0
	s.Processes[0] = Process{PC: idle, Bytes: s.Print}
	for range 20 {
		if s.Processes[0].PC == returned {
			return !s.P || s.undecided(cfg)
		}
		moved := false
		steps(cfg, s, func(step Step, next State) {
			if a := actions[step.action]; !moved && !a.world && step.process == 0 && next.Faults == s.Faults && a.at != dead {
				s, moved = next, true
			}
		})
		if !moved {
			return false
		}
	}
	return false
}

// Play takes the steps that are named, in order. It returns the state, and the first step that
// cannot happen, or "".
func Play(cfg *Config, names ...string) (s State, refused string) {
	s = start(cfg)
	for _, name := range names {
		found := false
		steps(cfg, s, func(step Step, next State) {
			if step.String() == name && !found {
				found = true
				defer func() { s = next }()
			}
		})
		if !found {
			return s, name
		}
	}
	return s, ""
}
