package switchlock

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The model has the rules of Record and view in all states that a few processes, engines and
// ticks of a clock can come to, in all orders. Requests are slow or get lost, reads are slow
// or get lost, releases are executed by some of the engines, and operators switch and go back.
// It looks for a state in which two processes believe in a lock.

const (
	modelProcesses = 2
	modelEngines   = 3
)

// An instance is how small the model is. Times are in ticks.
type instance struct {
	lease, ttl, margin int8
	switches, engines  int8
	hurry              int8 // by how much a switch is too short
}

// cross is how long a switch takes at least: a process that knows the old record for lease
// ticks has asked for its last lock one before the end of that.
func (in instance) cross() int8 { return in.lease - 1 + in.ttl - in.margin - in.hurry }

func (in instance) String() string {
	return fmt.Sprintf("lease=%d,ttl=%d,switches=%d,engines=%d", in.lease, in.ttl, in.switches, in.engines)
}

// A modelRecord is a Record, small.
type modelRecord struct {
	epoch, from, to int8
	settled         bool
}

// A modelProcess has what one process knows and does. Times are what is left.
type modelProcess struct {
	known        modelRecord
	fresh, cross int8
	reading      int8 // what the record that is being read is good for yet, -1 = none is
	sampled      bool
	sample       modelRecord
	valid        int8 // for how long it believes in its lock
	request      kind
	left         int8 // for how long it would believe in what it asks for
	ask, then    int8 // engines, -1 = none
}

type kind int8

const (
	idle kind = iota
	acquires
	renews
	upgrades // renews in both engines, and acquires what is missing
)

type modelLock struct{ owner, left int8 }

type modelState struct {
	record    modelRecord
	switches  int8
	processes [modelProcesses]modelProcess
	locks     [modelEngines]modelLock
}

var modelNames = [modelEngines]string{"a", "b", "c"}

func (in instance) full(r modelRecord) Record {
	return Record{
		Epoch: int64(r.epoch), From: modelNames[r.from], To: modelNames[r.to], Settled: r.settled,
		Lease: time.Duration(in.lease), TTL: time.Duration(in.ttl), Cross: time.Duration(in.cross()),
	}
}

func small(r Record) modelRecord {
	return modelRecord{int8(r.Epoch), engineOf(r.From), engineOf(r.To), r.Settled}
}

func engineOf(name string) int8 { return int8(name[0] - 'a') }

// view is what a process knows, at the time 0.
func (in instance) view(p modelProcess) view {
	return view{known: in.full(p.known), fresh: time.Duration(p.fresh), cross: time.Duration(p.cross)}
}

func (in instance) first() modelState {
	first := modelRecord{epoch: 1, settled: true}
	s := modelState{record: first}
	for i := range s.processes {
		s.processes[i] = modelProcess{known: first, fresh: in.lease, reading: -1, ask: -1, then: -1}
	}
	for i := range s.locks {
		s.locks[i].owner = -1
	}
	return s
}

func count(x *int8) { *x = max(0, *x-1) }

// successors calls out with each state that s can become.
func (in instance) successors(s modelState, out func(next modelState, what string)) {
	out(in.tick(s), "tick")
	in.operate(s, out)
	for i := range s.processes {
		in.read(s, i, out)
		in.settle(s, i, out)
		in.begin(s, i, out)
		in.proceed(s, i, out)
		in.release(s, i, out)
	}
}

func (in instance) tick(s modelState) modelState {
	for i := range s.processes {
		p := &s.processes[i]
		for _, x := range []*int8{&p.valid, &p.left, &p.cross, &p.fresh} {
			count(x)
		}
		if p.reading > 0 {
			p.reading--
		}
		if p.request != idle && p.left == 0 { // the answer would come too late
			p.request, p.ask, p.then = idle, -1, -1
		}
	}
	for i := range s.locks {
		if count(&s.locks[i].left); s.locks[i].left == 0 {
			s.locks[i].owner = -1
		}
	}
	return s
}

// operate has the operator move the locks, as far as the record allows.
func (in instance) operate(s modelState, out func(modelState, string)) {
	if s.switches == in.switches {
		return
	}
	for to := range in.engines {
		next, err := in.full(s.record).to(modelNames[to])
		if err != nil || small(next) == s.record {
			continue
		}
		n := s
		n.record = small(next)
		n.switches++
		out(n, "operator: to "+modelNames[to])
	}
}

// read reads the record: it begins, is answered by the source, and comes to an end.
func (in instance) read(s modelState, i int, out func(modelState, string)) {
	p := s.processes[i]
	set := func(q modelProcess, what string) {
		n := s
		n.processes[i] = q
		out(n, fmt.Sprintf("%d %s", i, what))
	}
	switch {
	case p.reading < 0:
		p.reading, p.sampled = in.lease, false
		set(p, "begins to read")
	case !p.sampled:
		p.sampled, p.sample = true, s.record
		set(p, fmt.Sprintf("reads %+v", p.sample))
	default:
		sample, started := p.sample, time.Duration(p.reading-in.lease)
		p.reading, p.sampled, p.sample = -1, false, modelRecord{}
		set(p, "loses what it read")
		v, err := in.view(p).learn(in.full(sample), started, 0)
		if err == nil {
			p.known = small(v.known)
			p.fresh, p.cross = int8(max(0, v.fresh)), int8(max(0, v.cross))
			set(p, "learns")
		}
	}
}

func (in instance) settle(s modelState, i int, out func(modelState, string)) {
	p := s.processes[i]
	if in.view(p).maySettle(0) && s.record == p.known {
		s.record = small(in.full(p.known).settle())
		out(s, fmt.Sprintf("%d settles", i))
	}
}

// begin begins an acquire or a renewal, by what the process knows.
func (in instance) begin(s modelState, i int, out func(modelState, string)) {
	p := &s.processes[i]
	names, err := in.view(*p).engines(0)
	if p.request != idle || err != nil {
		return
	}
	p.left = in.ttl - in.margin
	p.ask, p.then = engineOf(names[0]), -1
	if len(names) > 1 {
		p.then = engineOf(names[1])
	}
	switch {
	case p.valid == 0:
		p.request = acquires
	case p.then < 0:
		p.request = renews
	default:
		p.request = upgrades
	}
	out(s, fmt.Sprintf("%d asks %v", i, names))
}

// proceed lets the next engine answer a request, or loses the request.
func (in instance) proceed(s modelState, i int, out func(modelState, string)) {
	p := s.processes[i]
	if p.request == idle {
		return
	}
	ended := p
	ended.request, ended.ask, ended.then = idle, -1, -1
	n := s
	n.processes[i] = ended
	out(n, fmt.Sprintf("%d gets no answer", i))

	held := s.locks[p.ask]
	if held.owner != int8(i) && (held.owner >= 0 || p.request == renews) {
		if p.request != acquires {
			ended.valid = 0
		}
		n = s
		n.processes[i] = ended
		out(n, fmt.Sprintf("%s refuses %d", modelNames[p.ask], i))
		return
	}
	n = s
	n.locks[p.ask] = modelLock{int8(i), in.ttl}
	q := &n.processes[i]
	if q.ask, q.then = p.then, -1; q.ask < 0 { // all have granted it
		if p.request == acquires || p.valid > 0 { // a lock that has ended is not revived
			q.valid = p.left
		}
		q.request = idle
	}
	out(n, fmt.Sprintf("%s grants %d", modelNames[p.ask], i))
}

// release releases a holder's lock in any of the engines that have it.
func (in instance) release(s modelState, i int, out func(modelState, string)) {
	if p := s.processes[i]; p.valid == 0 || p.request != idle {
		return
	}
	for executed := 1; executed < 1<<in.engines; executed++ {
		n := s
		n.processes[i].valid = 0
		there := true
		for e := range n.locks {
			if executed&(1<<e) != 0 {
				there = there && n.locks[e].owner == int8(i)
				n.locks[e] = modelLock{owner: -1}
			}
		}
		if there {
			out(n, fmt.Sprintf("%d releases in %03b", i, executed))
		}
	}
}

// forget clears what has no effect any more, so that there are fewer states.
func forget(s modelState) modelState {
	for i := range s.processes {
		if p := &s.processes[i]; p.request == idle {
			p.left, p.ask, p.then = 0, -1, -1
		}
	}
	return s
}

// search returns how many states there are, and what leads to two holders, if anything does.
func (in instance) search() (states int, path []string) {
	type step struct {
		before int
		what   string
	}
	seen := map[modelState]struct{}{in.first(): {}}
	queue, steps := []modelState{in.first()}, []step{{before: -1}}
	for n := 0; n < len(queue); n++ {
		if believers(queue[n]) > 1 {
			for at := n; at > 0; at = steps[at].before {
				path = append([]string{steps[at].what}, path...)
			}
			return len(queue), path
		}
		in.successors(queue[n], func(s modelState, what string) {
			s = forget(s)
			if _, ok := seen[s]; !ok {
				seen[s] = struct{}{}
				queue, steps = append(queue, s), append(steps, step{n, what})
			}
		})
	}
	return len(queue), nil
}

func believers(s modelState) (n int) {
	for _, p := range s.processes {
		if p.valid > 0 {
			n++
		}
	}
	return n
}

// No two processes believe in one lock at a time. The largest instance is for make model and make
// mutants, which run without the race detector: a search is one goroutine.
func TestModel(t *testing.T) {
	instances := []instance{
		{lease: 2, ttl: 2, margin: 1, switches: 1, engines: 2},
		{lease: 1, ttl: 2, margin: 1, switches: 2, engines: 2},
	}
	if !raced {
		instances = append(instances, instance{lease: 1, ttl: 2, margin: 1, switches: 2, engines: 3})
	}
	if os.Getenv("BELAY_MODEL") == "full" {
		instances = append(instances,
			instance{lease: 1, ttl: 3, margin: 1, switches: 1, engines: 2},
			instance{lease: 2, ttl: 3, margin: 1, switches: 1, engines: 2},
			instance{lease: 1, ttl: 3, margin: 1, switches: 2, engines: 2},
			instance{lease: 1, ttl: 2, margin: 1, switches: 3, engines: 2},
		)
	}
	for _, in := range instances {
		t.Run(in.String(), func(t *testing.T) {
			t.Parallel()
			states, path := in.search()
			t.Logf("belay switch: %d states", states)
			if path != nil {
				t.Errorf("two holders:\n%s", strings.Join(path, "\n"))
			}
		})
	}
}

// The model finds two holders if a switch is a tick too short.
func TestModelFindsShortSwitch(t *testing.T) {
	for _, in := range []instance{
		{lease: 1, ttl: 3, margin: 1, switches: 1, engines: 2, hurry: 1},
		{lease: 2, ttl: 2, margin: 1, switches: 1, engines: 2, hurry: 1},
	} {
		if _, path := in.search(); path == nil {
			t.Errorf("%v: no two holders", in)
		}
	}
}

// A switch takes longer than any lock lasts that was acquired under the old record.
func TestCrossing(t *testing.T) {
	for _, d := range []time.Duration{100 * time.Millisecond, 10 * time.Second, time.Hour} {
		for _, ttl := range []time.Duration{100 * time.Millisecond, 30 * time.Second, time.Hour} {
			both := d + ttl
			if got := crossing(d, ttl); got < both+time.Second || got < both+both/50 {
				t.Errorf("crossing(%v, %v) = %v", d, ttl, got)
			}
		}
	}
}
