package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/guard"
)

// An action is one kind of thing that the scheduler does.
type action int

const (
	run       action = iota // a call is executed and answered
	cut                     // its request is lost
	cutAnswer               // its answer is lost
	delay                   // its connection breaks, and it is executed later, or never
	refuse                  // the database rolls back at a COMMIT
	mistake                 // it answers so, and commits
	haunt                   // a delayed call is executed
	wait                    // time passes
	lose                    // a lock is lost
	failOver                // a replica of the locks takes over that lacks the last changes
	toggle                  // the server of the locks goes away, or comes back
	fill                    // it has no memory, or has it again
	killProcess
	endSession // the server ends the session of a call
	crash      // the database crashes, and is back at once
	lag        // the second node of the database applies no more commits, or all
	replace    // a replica of the database takes over that lacks the last commits
	giveUp     // the context of a caller ends
	age        // requests are old
	freeze     // a process executes nothing for a while
)

func (a action) String() string {
	return [...]string{"run", "cut", "cut the answer to", "delay", "refuse", "refuse and do", "execute late", "wait", "lose the lock", "fail over", "server away or back",
		"server full or not", "kill", "end the session of", "crash the database", "second node lags or not", "fail over the database", "end the context of", "age", "pause the process"}[a]
}

// ofCall reports whether the action is on a call that waits.
func (a action) ofCall() bool { return a <= mistake }

// A choice is one thing that the scheduler did. A schedule is the list of them.
type choice struct {
	do      action
	on      string // label of a call, a key, or a process
	n       int
	forTime time.Duration
}

func (c choice) String() string {
	s := c.do.String()
	if c.on != "" {
		s += " " + c.on
	}
	if c.n > 0 {
		s += fmt.Sprintf(" (%d)", c.n)
	}
	if c.forTime > 0 {
		s += " " + c.forTime.String()
	}
	return s
}

// A chooser chooses what happens next.
type chooser interface {
	next(w *world, calls []*call) choice
}

// A player makes the choices of a list that are possible, and then goes on without faults.
type player struct{ choices []choice }

func (p *player) next(w *world, calls []*call) choice {
	for len(p.choices) > 0 {
		c := p.choices[0]
		p.choices = p.choices[1:]
		if w.possible(c, calls) {
			return c
		}
	}
	return oldest(calls)
}

// oldest is the choice without a fault.
func oldest(calls []*call) choice {
	if len(calls) == 0 {
		return choice{do: wait}
	}
	if i := slices.IndexFunc(calls, expired); i >= 0 {
		return choice{do: cut, on: calls[i].label()}
	}
	first := slices.MinFunc(calls, func(a, b *call) int { return a.n - b.n })
	return choice{do: run, on: first.label()}
}

func expired(c *call) bool { return c.ctx.Err() != nil }

// possible reports whether a choice can be made.
func (w *world) possible(c choice, calls []*call) bool {
	switch {
	case c.do.ofCall():
		return slices.ContainsFunc(calls, func(x *call) bool { return x.label() == c.on && (c.do != run || !expired(x)) })
	case c.do == haunt:
		return slices.ContainsFunc(w.ghosts, func(x *call) bool { return x.label() == c.on })
	case c.do == lose:
		return w.server.state.held[c.on].owner != ""
	case c.do == failOver:
		return c.n < len(w.server.older)
	case c.do == endSession:
		return slices.ContainsFunc(calls, func(x *call) bool { return x.label() == c.on && x.db != nil && x.db.Session > 0 })
	case c.do == lag:
		return w.db != nil && w.plan.second
	case c.do == crash || c.do == replace:
		return w.db != nil
	case c.do == giveUp:
		return w.mayGiveUp(c.on)
	case c.do == age:
		return w.mayAge()
	case c.do == freeze:
		return slices.ContainsFunc(w.processes, func(p *process) bool { return p.name == c.on && !p.dead && w.exchange.frozen[c.on].IsZero() })
	case c.do == killProcess:
		return slices.ContainsFunc(w.processes, func(p *process) bool { return p.name == c.on && !p.dead })
	case c.do == wait && c.forTime == 0:
		return len(calls) == 0
	}
	return true
}

// A dice chooses by the seed. Each actor has a priority, and the first of them goes on
// until it is put behind the others: uniform choices would hardly ever let one caller rest
// while another does all of its work.
type dice struct {
	*rand.Rand
	priority map[string]int
	lowest   int
	budget   int // faults left
}

func newDice(p plan) *dice {
	r := rand.New(rand.NewPCG(p.seed, 3))
	return &dice{Rand: r, priority: make(map[string]int), budget: p.faults + 2*p.relays}
}

func (d *dice) next(w *world, calls []*call) choice {
	if i := slices.IndexFunc(calls, expired); i >= 0 {
		do := []action{cut, cut, cutAnswer, delay}[d.IntN(4)]
		if do == delay && w.calm { // nothing arrives late any more
			do = cut
		}
		return choice{do: do, on: calls[i].label()}
	}
	if w.calm {
		return oldest(calls)
	}
	if len(w.ghosts) > 0 && d.IntN(12) == 0 {
		return choice{do: haunt, on: w.ghosts[d.IntN(len(w.ghosts))].label()}
	}
	if len(calls) == 0 {
		return choice{do: wait}
	}
	top := d.first(calls)
	if d.IntN(10) == 0 {
		d.rest(top.actor)
		top = d.first(calls)
	}
	odds := 8
	if top.text == flush || top.db != nil && top.db.Commit && strings.HasPrefix(top.sql, "UPDATE belay_pending") || top.db != nil && top.db.Commit && w.history.rival(top.op) {
		odds = 2
	}
	if top.mails {
		odds = 3
	}
	if d.budget > 0 && d.IntN(odds) == 0 {
		if c := d.fault(w, top); c != nil && w.possible(*c, calls) {
			d.budget--
			return *c
		}
	}
	return choice{do: run, on: top.label()}
}

// first returns the call of the actor with the highest priority.
func (d *dice) first(calls []*call) *call {
	for _, c := range calls {
		if _, ok := d.priority[c.actor]; !ok {
			d.priority[c.actor] = d.IntN(1000)
		}
	}
	return slices.MaxFunc(calls, func(a, b *call) int { return d.priority[a.actor] - d.priority[b.actor] })
}

func (d *dice) rest(actor string) {
	d.lowest--
	d.priority[actor] = d.lowest
}

var pauses = []time.Duration{20 * time.Millisecond, 600 * time.Millisecond, 2500 * time.Millisecond, ttl + time.Second}

// stall is longer than the lease of a call.
const stall = 24 * time.Second

func (d *dice) fault(w *world, top *call) *choice {
	if top.mails {
		return d.relayFault(top)
	}
	if top.text == flush && d.IntN(2) == 0 { // the commit is visible, and may be lost
		d.rest(top.actor)
		return &choice{do: wait, forTime: pauses[3]}
	}
	if top.text == think && d.IntN(2) == 0 { // the turns of its crew may end meanwhile
		if d.IntN(2) == 0 {
			d.rest(top.actor)
		}
		return &choice{do: wait, forTime: pauses[d.IntN(len(pauses))]}
	}
	if top.op != nil && top.op.work.calls && d.IntN(3) == 0 { // it stands still for longer than its lease, or its lock is lost meanwhile
		if d.IntN(2) == 0 {
			d.rest(top.actor)
			return &choice{do: wait, forTime: stall}
		}
		if key := top.op.lock(); w.server.state.held[key].owner != "" {
			d.rest(top.actor)
			return &choice{do: lose, on: key}
		}
	}
	if top.op != nil && top.op.gaveUp && top.db != nil && d.IntN(2) == 0 { // the database is silent for one who does not wait
		return &choice{do: wait, forTime: pauses[3]}
	}
	if n := len(w.plan.also); n > 0 && d.IntN(3) == 0 {
		return d.more(w, w.plan.also[d.IntN(n)], top)
	}
	if top.op != nil && d.IntN(10) == 0 {
		return &choice{do: giveUp, on: top.op.name}
	}
	if w.plan.purges && d.IntN(4) == 0 {
		return &choice{do: age, forTime: keeps / time.Duration(1+d.IntN(2))}
	}
	if w.plan.policy == guard.DBOnly && d.IntN(3) == 0 {
		return &choice{do: []action{toggle, fill}[d.IntN(2)]}
	}
	switch d.IntN(10) {
	case 0, 1, 2:
		return d.lose(w, top)
	case 3, 4, 5, 6:
		return d.cut(top)
	case 7:
		return &choice{do: wait, forTime: pauses[d.IntN(len(pauses))]}
	case 8:
		if d.IntN(2) == 0 {
			return &choice{do: endSession, on: top.label()}
		}
		return &choice{do: killProcess, on: top.process.name}
	case 9:
		switch d.IntN(6) {
		case 0, 1:
			return &choice{do: crash}
		case 2:
			return &choice{do: toggle}
		}
	}
	return &choice{do: failOver, n: d.IntN(3)}
}

// delicate are the calls whose answers matter most.
var delicate = []string{pays, "COMMIT", "ACQUIRE", "INSPECT", "RELEASE"}

// cut breaks a connection: most of all in a COMMIT, or with a lock.
func (d *dice) cut(c *call) *choice {
	verb, _, _ := strings.Cut(c.text, " ")
	if !c.cuts || !slices.Contains(delicate, verb) && d.IntN(3) > 0 {
		return nil
	}
	fates := []action{cut, cutAnswer, delay, refuse}
	switch {
	case c.pays:
		fates = append(fates, mistake) // it charges, and says that it is busy
	case c.db == nil || !c.db.Commit:
		fates = fates[:3]
	}
	return &choice{do: fates[d.IntN(len(fates))], on: c.label()}
}

// more is a fault that the plan has beside the ordinary ones.
func (d *dice) more(w *world, do action, top *call) *choice {
	switch {
	case do == replace, do == failOver:
		return &choice{do: do, n: 1 + d.IntN(3)}
	case do.ofCall() && (top.db == nil || !top.db.Commit):
		return nil
	case do.ofCall():
		return &choice{do: do, on: top.label()}
	}
	return &choice{do: do}
}

// lose loses the lock of the caller whose turn it is, who may rest then.
func (d *dice) lose(w *world, c *call) *choice {
	if c.op == nil {
		return nil
	}
	keys := c.op.keys()
	key := keys[d.IntN(len(keys))]
	if w.server.state.held[key].owner == "" {
		return nil
	}
	if d.IntN(4) > 0 {
		d.rest(c.actor)
	}
	return &choice{do: lose, on: key}
}
