package model

import (
	"hash/maphash"
	"slices"
)

// An action is one step of one caller, of one process (of its first caller), or of the
// world. It changes the state and reports true, or changes nothing and reports false.
type action struct {
	at   pc     // where the caller must be
	says string // with %s for the caller
	do   func(cfg *Config, s *State, i int) bool
}

var actions = slices.Concat(callerActions, databaseActions, engineActions, outageActions, requestActions, crewActions, faultActions)

// actionsOf returns what can happen in a configuration.
func actionsOf(cfg *Config) []action {
	switch {
	case cfg.Path:
		return pathActions
	case cfg.several():
		return keyActions
	}
	return actions
}

// A Report is what the search of one configuration has found.
type Report struct {
	Config    string
	States    int
	Witnesses map[string]*Story // by blind spot: the shortest
	Happened  map[string]bool   // actions, and results of a Do
	Violation *Story
}

// A Story is how a state is reached that breaks an invariant.
type Story struct {
	Config    *Config
	Invariant string // its ID
	Blind     string // the blind spot that excuses it
	Pair      bool   // two callers have overlapped in I5
	Steps     []Step
}

// A Step is one action of a story.
type Step struct{ action, who uint8 }

// stuck is the ID of what no invariant is: nothing can happen, and a Do has not returned.
const stuck = "stuck"

// Search goes through all states that a configuration can reach, the nearest first. It
// ends at the first violation. only names the invariant that counts; "" is for all.
func Search(cfg *Config, only string) Report {
	q := &search{cfg: cfg, only: only, actions: actionsOf(cfg), report: Report{Config: cfg.Name, Witnesses: make(map[string]*Story), Happened: make(map[string]bool)}}
	q.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	for k := range invariants {
		id := invariants[k].ID
		q.reports = append(q.reports, func(early, late int) { q.broken(id, early, late) })
	}
	q.state = start(cfg)
	q.visit()
	for from := q.next; len(from) > 0; {
		q.next = nil
		for _, f := range from {
			if q.expand(&f.State, f.at); q.report.Violation != nil {
				break
			}
		}
		if q.report.Violation != nil {
			break
		}
		from = q.next
	}
	q.report.States = len(q.seen.all)
	for k, a := range q.actions {
		if q.happened[k] {
			q.report.Happened[a.says] = true
		}
	}
	for r, name := range resultNames {
		if q.results[r] {
			q.report.Happened[name] = true
		}
	}
	return q.report
}

type search struct {
	cfg     *Config
	only    string
	actions []action
	seeds   [2]maphash.Seed
	seen    seen
	next    []found // the states that are one step farther
	report  Report
	reports []func(early, late int) // by invariant

	happened [256]bool // by action
	results  [256]bool

	state State // that is being checked
	from  uint32
	step  Step
}

// found is a state and its place in seen.
type found struct {
	State
	at uint32
}

func (q *search) expand(s *State, at uint32) {
	moved := false
	q.state, q.from = *s, at
	for i := range callers {
		if !q.cfg.Path && q.cfg.Callers[i] == nobody {
			continue
		}
		for k := range q.actions {
			a := &q.actions[k]
			if a.at != anywhere && s.Callers[i].PC != a.at {
				continue
			}
			if !a.do(q.cfg, &q.state, i) {
				continue
			}
			moved, q.step = true, Step{uint8(k), uint8(i)}
			q.happened[k] = true
			q.settle()
			if q.visit(); q.report.Violation != nil {
				return
			}
			q.state = *s
		}
	}
	if !moved {
		q.end(s, at)
	}
}

// visit notes the state if it is new, and checks it.
func (q *search) visit() {
	id := [2]uint64{maphash.Comparable(q.seeds[0], q.state), maphash.Comparable(q.seeds[1], q.state)}
	at, isNew := q.seen.add(visited{id, q.from, q.step})
	if !isNew {
		return
	}
	q.next = append(q.next, found{q.state, at})
	for k := range invariants {
		if always := invariants[k].always; always != nil {
			always(q.cfg, &q.state, q.reports[k])
		}
	}
}

// settle checks those who are about to return, and lets them.
func (q *search) settle() {
	q.state.deliver(q.cfg)
	for i := range q.state.Callers {
		c := &q.state.Callers[i]
		if c.PC != returning {
			continue
		}
		q.results[c.Res] = true
		for k := range invariants {
			if returns := invariants[k].returns; returns != nil && returns(q.cfg, &q.state, i) {
				q.reports[k](i, i)
			}
		}
	}
	q.state.settle()
}

// end checks a state in which nothing can happen any more.
func (q *search) end(s *State, at uint32) {
	q.state, q.from, q.step = *s, q.seen.all[at].from, q.seen.all[at].step
	for i := range s.Callers {
		if pc := s.Callers[i].PC; !q.cfg.Path && !q.cfg.several() && pc != returned && pc != dead {
			q.broken(stuck, i, i)
		}
	}
	for k := range invariants {
		if ends := invariants[k].ends; ends != nil {
			ends(q.cfg, s, q.reports[k])
		}
	}
}

// broken takes in that the state breaks an invariant, perhaps in a blind spot.
func (q *search) broken(id string, early, late int) {
	excused := false
	for _, b := range blindspots {
		if slices.Contains(b.Of, id) && b.Pair == (early != late) && b.holds(q.cfg, &q.state, early, late) {
			excused = true
			if q.report.Witnesses[b.Name] == nil {
				q.report.Witnesses[b.Name] = q.story(id, b.Name, early != late)
			}
		}
	}
	if excused || q.report.Violation != nil || q.only != "" && q.only != id {
		return
	}
	q.report.Violation = q.story(id, "", early != late)
}

func (q *search) story(id, blind string, pair bool) *Story {
	return &Story{q.cfg, id, blind, pair && id == "I5", q.seen.path(q.from, q.step)}
}

// visited is a state that was found, by its fingerprint of 128 bits: two states in
// millions that share one are less likely than a machine that miscounts.
type visited struct {
	id   [2]uint64
	from uint32
	step Step
}

// seen is the set of the states, an open hash table over their list.
type seen struct {
	all   []visited
	table []uint32 // places in all, from 1
	mask  uint64   // of places in table
	n     uint32   // len(all)
}

func (v *seen) add(s visited) (at uint32, isNew bool) {
	if len(v.all) >= len(v.table)/2 {
		v.grow()
	}
	h := s.id[0] & v.mask
	for ; v.table[h] != 0; h = (h + 1) & v.mask {
		if at = v.table[h] - 1; v.all[at].id == s.id {
			return at, false
		}
	}
	v.all = append(v.all, s)
	v.n++
	v.table[h] = v.n
	return v.n - 1, true
}

func (v *seen) grow() {
	v.mask = max(2*v.mask+1, 1<<16-1)
	v.table = make([]uint32, v.mask+1)
	for n := range v.n {
		h := v.all[n].id[0] & v.mask
		for v.table[h] != 0 {
			h = (h + 1) & v.mask
		}
		v.table[h] = n + 1
	}
}

// path returns the steps from the start to the state from, and last.
func (v *seen) path(from uint32, last Step) []Step {
	steps := []Step{last}
	for from != 0 {
		steps = append(steps, v.all[from].step)
		from = v.all[from].from
	}
	slices.Reverse(steps)
	return steps
}
