package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/model"
	"github.com/belaygo/belay/internal/sim/simdb"
)

// A traced is a plan that the model has a configuration for: two or three callers do the same
// on one key, or want two keys.
type traced struct {
	plan
	cfg  *model.Config
	rows []string // of each key
	keys []string // of the locks
}

// A tracedKind is a workload that the model has a configuration for.
type tracedKind struct {
	name, row string
	cfg       model.Config
}

// tracedWork are the workloads whose rows the model has.
var tracedWork = []tracedKind{
	{"insert", "orders/k", model.Config{Keyed: true}},
	{"insert with a key", "labels/k", model.Config{}},
	{"update", "stocks/1", model.Config{Update: true, Row: 1}},
	{"update with a stamp", "wares/1", model.Config{Update: true, Row: 1, Stamp: true}},
}

// tracedRequests are those that serve a request. Its claim is the row that the model has.
var tracedRequests = []tracedKind{
	{"once: order", "belay_once/r", model.Config{Serves: model.ByOnce, Stamp: true, Marks: true}},
	{"once: order and decline", "belay_once/r", model.Config{Serves: model.Declined, Stamp: true, Marks: true}},
}

// tracedFor are those that serve a request by For: under a key of its rows, or under its own.
var tracedFor = []tracedKind{
	{"request: order", "belay_once/r", model.Config{Serves: model.ByFor, Retries: 2, Stamp: true}},
	{"request: order under its own key", "belay_once/r", model.Config{Serves: model.ByFor, Stamp: true}},
	{"request: order and remember", "belay_once/r", model.Config{Serves: model.ByFor, Retries: 2, Stamp: true, Marks: true}},
}

// tracedCrews are those of callers who may share a transaction.
var tracedCrews = []tracedKind{
	{"combined take", "accounts/1", model.Config{Crew: true, Update: true, Row: 1}},
	{"combined take with a stamp", "purses/1", model.Config{Crew: true, Update: true, Row: 1, Stamp: true}},
	{"slow combined take", "accounts/1", model.Config{Crew: true, Update: true, Row: 1}},
	{"combined insert", "orders/k", model.Config{Crew: true, Keyed: true}},
}

// tracedOutages are those of callers who go on without the lock while its server serves none.
var tracedOutages = []tracedKind{
	{"insert", "orders/k", model.Config{DBOnly: true, Keyed: true}},
	{"insert with a key", "labels/k", model.Config{DBOnly: true}},
	{"update", "stocks/1", model.Config{DBOnly: true, Update: true, Row: 1}},
	{"update with a stamp", "wares/1", model.Config{DBOnly: true, Update: true, Row: 1, Stamp: true}},
}

// A family is what schedules are drawn from, and how many: in ordinary tests, and in `make sim`. Those of
// one family stay what they are when another one grows.
type family struct {
	kinds      []tracedKind
	some, most uint64
}

var families = map[string]family{
	"rows":            {tracedWork, 400, 6000},
	"requests":        {tracedRequests, 200, 3000},
	"requests by For": {tracedFor, 200, 1500},
	"crews":           {tracedCrews, 200, 2000},
	"outages":         {tracedOutages, 200, 2000},
	"two keys":        {tracedKeys, 200, 2000},
}

// comings are when callers come whose lock may have no server then.
var comings = []time.Duration{0, 0, 700 * time.Millisecond, ttl + time.Second}

func newTraced(family string, seed uint64) traced {
	r := rand.New(rand.NewPCG(seed, 5))
	kinds := families[family].kinds
	kind := kinds[r.IntN(len(kinds))]
	cfg := kind.cfg
	p := plan{seed: seed, faults: 1 + r.IntN(5), server: simdb.MariaDB, dialect: "mysql"}
	if cfg.Postgres = r.IntN(2) == 0; cfg.Postgres {
		p.server, p.dialect = simdb.PostgreSQL, "postgres"
	}
	if cfg.Keys[0] != 0 {
		return newTracedKeys(p, kind, &cfg, r)
	}
	if cfg.DBOnly {
		p.policy = guard.DBOnly
	}
	if p.knobs.VisibleBeforeDurable = r.IntN(3) == 0; p.knobs.VisibleBeforeDurable {
		cfg.Budget.Crash = 1
	}
	s, key := spec{work: workloadOf(kind.name), key: "k", wait: time.Hour}, "k"
	if cfg.Serves != model.NoRequest {
		s.request = request{"r", "a"}
	}
	if s.work.keyed {
		key = s.lock()
	}
	if cfg.Refuse = r.IntN(2) == 0 && !cfg.Crew; cfg.Refuse { // nobody shares a transaction who does not wait
		s.wait = 0
	}
	cfg.Callers = [3]uint8{0, 1, 9} // 9 is no process
	p.work = [][][]spec{{{s}}, {{s}}}
	if r.IntN(2) == 0 || cfg.Crew {
		cfg.Callers[2] = 0
		p.work[0] = append(p.work[0], []spec{s})
	}
	if cfg.DBOnly { // some come when an outage has begun, or ended
		for _, of := range p.work {
			for i := range of {
				of[i][0].rest = comings[r.IntN(len(comings))]
			}
		}
	}
	cfg.Name = p.dialect + " " + kind.name
	return traced{p, &cfg, []string{kind.row}, []string{key}}
}

// A narrow chooser makes those choices of a dice that the model has.
type narrow struct {
	*dice
	traced
	tracer *tracer
	ahead  []choice
}

func (n *narrow) next(w *world, calls []*call) choice {
	if n.tracer == nil {
		n.tracer = newTracer(w, n.traced)
		w.gate.follow(n.tracer)
	}
	if len(n.ahead) > 0 {
		c := n.ahead[0]
		n.ahead = n.ahead[1:]
		return c
	}
	return n.adapt(w, n.among(w, calls, n.has, n.tracer.omitted))
}

// among returns the next choice that a model has, and counts those that it has not.
func (d *dice) among(w *world, calls []*call, has func(choice, []*call) bool, omitted map[string]int) choice {
	for {
		budget := d.budget
		c := d.next(w, calls)
		if has(c, calls) {
			return c
		}
		d.budget = budget
		omitted[c.do.String()]++
	}
}

// adapt makes a choice as the model has it: a process that is killed does not come back, and
// during half of the long pauses no lock is renewed.
func (n *narrow) adapt(w *world, c choice) choice {
	switch {
	case c.do == killProcess:
		w.plan.work = slices.Clone(w.plan.work)
		w.plan.work[c.on[1]-'0'] = nil
	case c.do == wait && c.forTime > ttl && n.IntN(2) == 0:
		n.ahead = []choice{c, {do: toggle}}
		return choice{do: toggle}
	}
	return c
}

// has reports whether the model has a choice. It knows nothing of an acquire that is made
// again as it was not answered, of a crash or a pause while evidence is collected, and of a
// crash while the outcome of a COMMIT is looked into.
func (n *narrow) has(c choice, calls []*call) bool {
	if n.cfg.Keys[0] != 0 && !n.hasOfKeys(c, calls) {
		return false
	}
	switch c.do {
	case run, lose, haunt, killProcess:
		return true
	case toggle, fill:
		return n.cfg.DBOnly && !slices.ContainsFunc(calls, n.reclaims)
	case crash:
		return len(n.tracer.judging)+len(n.tracer.unsure) == 0
	case wait:
		acquires := slices.ContainsFunc(calls, func(x *call) bool { return strings.HasPrefix(x.text, "ACQUIRE") })
		asks := func(x *call) bool { return x.text == queue && !n.tracer.denied[x.op.caller()] }
		if n.cfg.DBOnly && (acquires || slices.ContainsFunc(calls, asks) || !n.cfg.Refuse && c.forTime > ttl) { // a caller that stands still, or has no answer in time, goes on without the lock
			return false
		}
		if (n.cfg.Serves != model.NoRequest || n.cfg.Crew) && !n.cfg.Refuse && len(n.work[0]) > 1 && c.forTime > ttl { // the next of the queue begins to acquire
			return false
		}
		return c.forTime == 0 || len(n.tracer.judging) == 0 && (n.cfg.Refuse || !acquires) && !slices.ContainsFunc(calls, n.reclaims)
	case cut, cutAnswer, delay, refuse:
		return n.cuts(c.do, calls[slices.IndexFunc(calls, func(x *call) bool { return x.label() == c.on })])
	}
	return false
}

// reclaims reports whether a caller releases a lock that it meets: that has an answer.
func (n *narrow) reclaims(c *call) bool {
	return c.op != nil && c.db == nil && strings.HasPrefix(c.text, "RELEASE") && len(c.op.attempts) == 0
}

func (n *narrow) cuts(do action, c *call) bool {
	if expired(c) {
		return do == cut || do == cutAnswer
	}
	switch verbOf(c) {
	case "ACQUIRE":
		return n.cfg.Refuse && !n.cfg.DBOnly
	case "RELEASE": // not of a lock that its caller meets
		return do != delay && !n.reclaims(c)
	case "RENEW", "INSPECT", "INSERT", "UPDATE", claims, works, stores:
		return do != delay
	case "COMMIT":
		return true
	}
	return false
}

// follow runs a schedule, and follows it through a model that may be weak.
func follow(t *testing.T, p traced, weak model.Weakness) (*tracer, result) {
	t.Helper()
	p.cfg.Weak = weak
	n := &narrow{dice: newDice(p.plan), traced: p}
	r := simulate(t, p.plan, n)
	return n.tracer, r
}

// TestTraces follows schedules through the model: each step must be one that the model can
// take. They are always the same: of others, about one in 5,000 of rows and of outages,
// and one in 1,000 of requests, has a step that the model lacks, and none of 10,000 of two keys.
func TestTraces(t *testing.T) {
	if os.Getenv(envSeed) != "" {
		for _, family := range slices.Sorted(maps.Keys(families)) {
			tr, r := follow(t, newTraced(family, number(envSeed)), model.Weakness{})
			t.Logf("\n%s\n%s\n%v", r.plan, r.text(), tr.err)
		}
		return
	}
	all := followed{Covered: model.NewCovered(), others: make(map[string]int), omitted: make(map[string]int), begun: time.Now()}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		all.family(t, name)
	}
	all.report(t)
}

// followed is what schedules have shown that were followed.
type followed struct {
	model.Covered
	others, omitted map[string]int // as those of a tracer
	begun           time.Time
	counts          []string
	n               uint64
}

// family follows the schedules of one family.
func (f *followed) family(t *testing.T, name string) {
	t.Helper()
	first, count := cmp.Or(number(envTraces), 1), families[name].some
	if os.Getenv(envTime) != "" {
		count = families[name].most
	}
	for seed := first; seed < first+count; seed++ {
		tr, r := follow(t, newTraced(name, seed), model.Weakness{})
		if tr.err != nil || len(r.problems) > 0 {
			t.Fatalf("%s, seed %d: %v\n%s\n%s\n%s\nagain: make sim SEED=%d", name, seed, tr.err, strings.Join(r.problems, "\n"), r.plan, r.text(), seed)
		}
		f.add(tr)
	}
	f.n += count
	f.counts = append(f.counts, fmt.Sprintf("%d of %s", count, name))
}

func (f *followed) add(tr *tracer) {
	f.Add(tr.trace.Covered)
	for what, times := range tr.others {
		f.others[what] += times
	}
	for what, times := range tr.omitted {
		f.omitted[what] += times
	}
}

// report says what of the model no schedule has shown, what the schedules showed of which the model
// knows nothing, and what was not done to them, as the model lacks it.
func (f *followed) report(t *testing.T) {
	t.Helper()
	missed, blind := f.Never()
	for _, says := range missed {
		t.Logf("   never   action: %s", says)
	}
	t.Logf("%8d actions of the model have no sight yet: %s", len(blind), strings.Join(blind, "; "))
	for _, what := range slices.Sorted(maps.Keys(f.Idle)) {
		t.Logf("%8d x no action: %s", f.Idle[what], what)
	}
	for _, what := range slices.Sorted(maps.Keys(f.others)) {
		t.Logf("%8d x no sight: %s", f.others[what], what)
	}
	for _, what := range slices.Sorted(maps.Keys(f.omitted)) {
		t.Logf("%8d x left out of traces: %s", f.omitted[what], what)
	}
	t.Logf("%d schedules are behaviours of the model, %.0f a second: %s", f.n, float64(f.n)/time.Since(f.begun).Seconds(), strings.Join(f.counts, ", "))
}

// TestTracesBite follows schedules through models with a weakness: the code must be caught at
// what they cannot do.
func TestTracesBite(t *testing.T) {
	for _, bite := range []struct {
		name, family string
		weak         model.Weakness
	}{
		{"the release of an unknown commit", "rows", model.Weakness{ReleaseUnknown: true}},
		{"a COMMIT without an answer is rolled back", "rows", model.Weakness{CutIsRolledBack: true}},
		{"no question at the release", "rows", model.Weakness{NoReleaseQuestion: true}},
		{"each refused write is a repeat", "rows", model.Weakness{JudgeWithoutEvidence: true}},
		{"an update does not compare versions", "rows", model.Weakness{NoVersionCompare: true}},
		{"a second insert is taken", "rows", model.Weakness{NoUniqueIndex: true}},
		{"the row is not compared", "rows", model.Weakness{NoComparison: true}},
		{"the operation runs before its claim", "requests", model.Weakness{ClaimLast: true}},
		{"a refusal keeps what was written", "requests", model.Weakness{KeepRefused: true}},
		{"a second claim is taken", "requests", model.Weakness{NoUniqueIndex: true}},
		{"a refused claim is a repeat, whatever was seen", "requests", model.Weakness{JudgeWithoutEvidence: true}},
		{"a crew raises the version by one", "crews", model.Weakness{OneVersion: true}},
		{"the event of a crew counts one", "crews", model.Weakness{CountOne: true}},
		{"a twin joins its crew", "crews", model.Weakness{TwinJoins: true}},
		{"members are answered before the COMMIT", "crews", model.Weakness{AnswerBeforeCommit: true}},
		{"the operation of For runs before its claim", "requests by For", model.Weakness{ClaimLast: true}},
		{"a second claim by For is taken", "requests by For", model.Weakness{NoUniqueIndex: true}},
		{"a claim of For that is refused is a repeat, whatever was seen", "requests by For", model.Weakness{JudgeWithoutEvidence: true}},
		{"keys are acquired in any order", "two keys", model.Weakness{AnyOrder: true}},
		{"a refused caller keeps a key", "two keys", model.Weakness{KeepSome: true}},
		{"only the first lock is looked at", "two keys", model.Weakness{FirstLeaseOnly: true}},
		{"an event names the first key", "two keys", model.Weakness{NameFirst: true}},
	} {
		t.Run(bite.name, func(t *testing.T) { caught(t, bite.family, bite.weak) })
	}
}

func caught(t *testing.T, family string, weak model.Weakness) {
	t.Helper()
	const most = 500
	for seed := range uint64(most) {
		if tr, _ := follow(t, newTraced(family, seed+1), weak); tr.err != nil {
			what, _, _ := strings.Cut(fmt.Sprint(tr.err), "\n")
			t.Logf("after %d schedules: %s", seed+1, what)
			return
		}
	}
	t.Errorf("%d schedules are behaviours of a model with that weakness", most)
}
