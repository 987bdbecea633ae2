package call

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Shown is what the tables, the provider and the processes show between two steps of a run.
type Shown struct {
	Pending   bool            // there is P; without it Attempt, Lease, Answered and Print are zero
	Attempt   uint8           // the number of the attempt that P has, counted from 1
	Lease     bool            // the lease of P has not ended
	Answered  uint8           // the result in P: 0 is none, 1 that the provider has accepted, 2 that it has refused
	Print     uint8           // the print in P: 1, or 2 for that of the other content
	Claim     bool            // there is C
	Past      bool            // Until has passed
	Reserved  uint8           // how many reservations are committed
	Settled   uint8           // a bit for each result that is settled: 1<<1 and 1<<2
	Remembers uint8           // the answer that the provider remembers, numbered as in Answered
	Calls     [processes]bool // the provider has the call of a process
}

// shows returns what a state shows.
func (s *State) shows() Shown {
	x := Shown{Claim: s.C, Past: s.Past, Reserved: s.Reserved, Settled: s.How, Remembers: s.Remembers}
	if s.P {
		x.Pending, x.Attempt, x.Lease, x.Answered, x.Print = true, s.Attempt, s.Lease, s.Answered, s.Print
	}
	for i := range s.Processes {
		x.Calls[i] = s.Processes[i].PC == calling
	}
	return x
}

// between reports whether each part of x is as before or as now: a step may change several. The lease of a
// new attempt may have ended since.
func (x Shown) between(before, now Shown) bool {
	return either(x.Pending, before.Pending, now.Pending) && either(x.Attempt, before.Attempt, now.Attempt) &&
		(either(x.Lease, before.Lease, now.Lease) || now.Attempt != before.Attempt) &&
		either(x.Answered, before.Answered, now.Answered) && either(x.Print, before.Print, now.Print) &&
		either(x.Claim, before.Claim, now.Claim) && either(x.Past, before.Past, now.Past) &&
		either(x.Reserved, before.Reserved, now.Reserved) && either(x.Settled, before.Settled, now.Settled) &&
		either(x.Remembers, before.Remembers, now.Remembers) &&
		either(x.Calls[0], before.Calls[0], now.Calls[0]) && either(x.Calls[1], before.Calls[1], now.Calls[1])
}

func either[T comparable](x, before, now T) bool { return x == before || x == now }

// A Sight is a kind of step that is seen by itself, as no table shows it.
type Sight string

// The sights.
const (
	Begins    Sight = "makes the request"
	Granted   Sight = "is granted the lock"
	LockGone  Sight = "has the lock no more" // it was released or lost
	CallFails Sight = "gets no answer to its call"
	CallOver  Sight = "has no time left for its call, or panics in it"
	Killed    Sight = "is killed"
	Returns   Sight = "returns"
	Hit       Sight = "is hit by a fault"               // until its next request it may fail unseen
	LeaseOver Sight = "sees the time of the lease pass" // it counts as a step of the first process, whoever has the lease
)

// A Seen is a step of a process that was seen by itself.
type Seen struct {
	What Sight
	Who  int    // the process, from 0
	Says Answer // what the caller is told, if What is Returns
}

func (x Seen) String() string {
	return strings.TrimSpace(fmt.Sprintf("%c %s %s", "AB"[x.Who], x.What, x.Says))
}

// An Answer is what a caller is told.
type Answer string

// The answers.
const (
	Done       Answer = "that it is done"
	Replayed   Answer = "the stored answer"
	Mismatch   Answer = "ErrMismatch"
	Busy       Answer = "ErrBusy"
	Undecided  Answer = "that it is undecided"
	Pending    Answer = "ErrPending"
	Unknown    Answer = "ErrUnknown"
	Panicked   Answer = "the panic of its call"
	LockFailed Answer = "that its lock has failed"
	Failed     Answer = "another error"
)

// answers are what those are told who have left by an action.
var answers = map[string][]Answer{
	"%s breaks off before it reserves":                  {Failed},
	"%s cannot insert P, and is busy":                   {Busy, LockFailed},
	"%s finds the claim behind its INSERT, and is busy": {Busy, LockFailed},
	"%s finds the claim and replays it":                 {Replayed, Mismatch},
	"%s finds the pending call of another, and is busy": {Busy},
	"%s finds what is undecided":                        {Undecided},
	"%s finds another content":                          {Mismatch},
	"%s commits the reservation, and is not answered":   {Unknown},
	"%s sends a COMMIT of the reservation that is lost": {Unknown, Failed},
	"%s takes over, and is not answered":                {Pending},
	"%s sends a takeover that is lost":                  {Pending},
	"%s comes too late to take over":                    {Busy},
	"%s ends its lease":                                 {Pending},
	"%s fails to end its lease":                         {Pending},
	"the time of the call of %s is over":                {Pending, Panicked},
	"%s settles":                                        {Done},
	"%s settles what it has read":                       {Done},
	"%s settles, and is not answered":                   {Pending, Unknown},
	"%s settles what it has read, and is not answered":  {Pending, Unknown},
	"%s stores the result":                              {Pending},
	"%s fails to store the result":                      {Pending},
	inVain("%s settles"):                                {Pending, Replayed},
	inVain("%s settles what it has read"):               {Pending, Replayed},
}

// inVain is an action that settles nothing, since another attempt has P.
func inVain(says string) string { return says + " in vain" }

// tied are the actions that are seen by themselves.
var tied = map[Sight][]string{
	Begins:    {"%s makes the request again"},
	Granted:   {"%s gets the lock"},
	LockGone:  {"the lock of %s is lost"},
	CallFails: {"the provider fails for %s", "the answer of the provider to %s is lost"},
	CallOver:  {"the time of the call of %s is over"},
	Killed:    {"%s dies"},
	LeaseOver: {"the lease ends"},
}

// idle reports whether a sight stands for no action in a state: the first request, a lock that is acquired
// to settle, the end of a lock that the model has ended, and what a caller is told.
func (r *reached) idle(x Seen) bool {
	p := &r.Processes[x.Who]
	switch x.What {
	case Begins:
		return p.PC == idle
	case Granted:
		return p.PC != idle && p.PC != dead
	case LockGone:
		return r.Lock != holder(x.Who)
	case Killed:
		return p.PC == idle || p.PC == returned
	case CallFails, CallOver, LeaseOver:
		return false
	case Hit:
		return true
	}
	if p.PC == idle { // it has not got the lock
		return x.Says == Busy || x.Says == Failed
	}
	return p.PC == returned && slices.Contains(answers[r.left[x.Who]], x.Says)
}

// A Trace holds a run of the code against the model: it keeps the states that the model may be in.
type Trace struct {
	Taken map[string]int // actions that may have led to what was seen
	Idle  map[string]int // sights without an action

	cfg   *Config
	hit   [processes]bool // a fault has hit the process since it has made its last request
	at    states
	shown Shown
	seen  []string
}

// A reached is a state, with the actions by which the processes have returned.
type reached struct {
	State
	left [processes]string
}

// states have the actions on the ways to them, a bit for each.
type states map[reached]uint64

// plenty are faults and repeats: what happens is seen.
const plenty = 100

// NewTrace begins where a Config begins.
func NewTrace(cfg *Config) *Trace {
	cfg.Faults, cfg.Repeats = plenty, plenty
	return &Trace{Taken: make(map[string]int), Idle: make(map[string]int), cfg: cfg, at: states{reached{State: start(cfg)}: 0}}
}

// See takes in what is shown now, and the steps that were seen since it was called last. The error says what
// the model cannot do.
func (t *Trace) See(now Shown, steps ...Seen) error {
	all := t.closure(t.at, now)
	for _, x := range steps {
		before := all
		if x.What == Begins || x.What == Hit {
			t.hit[x.Who] = x.What == Hit
		}
		if all = t.closure(t.take(all, x, now), now); len(all) == 0 {
			return t.impossible(x.String(), before)
		}
		t.seen = append(t.seen, x.String())
	}
	t.at = make(states)
	for r, path := range all {
		if r.shows() == now {
			t.count(path)
			t.at[r] = 0
		}
	}
	if len(t.at) == 0 {
		return t.impossible(fmt.Sprintf("%+v", now), all)
	}
	if now != t.shown {
		t.seen = append(t.seen, fmt.Sprintf("%+v", now))
	}
	t.shown = now
	return nil
}

func (t *Trace) count(path uint64) {
	for k := range actions {
		if path&(1<<k) != 0 {
			t.Taken[actions[k].says]++
		}
	}
}

// take returns what a step leads to that was seen.
func (t *Trace) take(from states, x Seen, now Shown) states {
	after, stays := make(states), false
	for r, path := range from {
		t.steps(r, now, func(step Step, next reached) {
			if slices.Contains(tied[x.What], actions[step.action].says) && int(step.process) == x.Who {
				after[next] |= path | 1<<step.action
			}
		})
		if r.idle(x) {
			after[r] |= path
			stays = true
		}
	}
	if stays && x.What != Returns && x.What != Hit { // which never are actions
		t.Idle[string(x.What)]++
	}
	return after
}

// closure adds what the model may come to by steps that are not seen by themselves. A state that it adds has
// the actions on all shortest ways to it.
func (t *Trace) closure(from states, now Shown) states {
	all := maps.Clone(from)
	for next := from; len(next) > 0; {
		from, next = next, make(states)
		for r, path := range from {
			t.steps(r, now, func(step Step, after reached) {
				if _, known := all[after]; !known && !isTied(actions[step.action].says) {
					next[after] |= path | 1<<step.action
				}
			})
		}
		maps.Copy(all, next)
	}
	return all
}

func isTied(says string) bool {
	for _, of := range tied {
		if slices.Contains(of, says) {
			return true
		}
	}
	return false
}

// steps calls f with what r can become that may be shown until now.
func (t *Trace) steps(r reached, now Shown, f func(Step, reached)) {
	steps(t.cfg, r.State, func(step Step, next State) {
		if !next.shows().between(t.shown, now) || !t.may(step, r.Faults-next.Faults) {
			return
		}
		next.Faults, next.Repeats = plenty, plenty
		after, i, says := reached{next, r.left}, step.process, actions[step.action].says
		switch was, is := r.Processes[i].PC, next.Processes[i].PC; {
		case was == is:
		case is == idle:
			after.left[i] = ""
		case is == returned && answers[inVain(says)] != nil && next.Settled == r.Settled:
			after.left[i] = inVain(says)
		case is == returned:
			after.left[i] = says
		}
		f(step, after)
	})
}

// may reports whether a step may spend its faults: it is seen by itself, or its process was hit.
func (t *Trace) may(step Step, faults uint8) bool {
	return faults == 0 || t.hit[step.process] || isTied(actions[step.action].says)
}

// impossible describes what the model cannot do, and what it could do instead.
func (t *Trace) impossible(what string, at states) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no behaviour of the model: %s\n", what)
	for n, seen := range t.seen {
		fmt.Fprintf(&b, "%4d  %s\n", n+1, seen)
	}
	fmt.Fprintf(&b, "   !  %s\nThe model could do instead:\n", what)
	could := make(map[string]bool)
	for r := range at {
		steps(t.cfg, r.State, func(step Step, _ State) { could[step.String()] = true })
	}
	for _, line := range slices.Sorted(maps.Keys(could)) {
		fmt.Fprintf(&b, "      %s\n", line)
	}
	return fmt.Errorf("%s", strings.TrimRight(b.String(), "\n"))
}

// Never returns the actions that are not among those taken.
func Never(taken map[string]int) (never []string) {
	for _, a := range actions {
		if taken[a.says] == 0 {
			never = append(never, a.says)
		}
	}
	return never
}
