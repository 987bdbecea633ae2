package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
)

// The environment gives what is run: how long, the first seed and the last, or one seed alone.
// A child runs every n-th seed.
const (
	envTime   = "BELAY_SIM"
	envFrom   = "BELAY_SIM_FROM"
	envTo     = "BELAY_SIM_TO"
	envSeed   = "BELAY_SIM_SEED"
	envEvery  = "BELAY_SIM_EVERY"
	envShrink = "BELAY_SIM_SHRINK"  // for how long a violation is shrunk
	envCalls  = "BELAY_SIM_EFFECTS" // if it is set, only schedules with messages or calls run
	envTraces = "BELAY_TRACES"      // the first seed of TestTraces and TestCallTraces
	mark      = "sim result: "
)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1) // or what runs between two steps would differ from run to run
	debug.SetGCPercent(300)
	openBase()
	os.Exit(m.Run())
}

// A summary is what a process has found.
type summary struct {
	Schedules int
	Spots     map[string]int // blind spots, how often they fired
	Faults    map[string]int
	Effects   map[string]int // schedules with messages and calls, and messages
	Violation string
}

// TestSim runs schedules, and expects that none breaks what is promised.
func TestSim(t *testing.T) {
	limit, err := time.ParseDuration(cmp.Or(os.Getenv(envTime), "3s"))
	if err != nil {
		t.Fatal(err)
	}
	var s summary
	start := time.Now()
	switch seed, from := number(envSeed), cmp.Or(number(envFrom), 1); {
	case os.Getenv(envSeed) != "":
		tellOne(t, seed)
		return
	case os.Getenv(envEvery) != "":
		s = explore(t, from, number(envEvery), limit)
		line, _ := json.Marshal(s)
		fmt.Fprintln(os.Stdout, mark+string(line))
		return
	case os.Getenv(envTime) == "":
		s = explore(t, from, 1, limit)
	default:
		s = spread(t, from, limit)
	}
	violations := 0
	if s.Violation != "" {
		violations = 1
		t.Errorf("%s", s.Violation)
	}
	report(t, s)
	t.Logf("%.0f schedules a second", float64(s.Schedules)/time.Since(start).Seconds())
	fmt.Fprintf(os.Stdout, "belay sim: %d schedules, %d violations\n", s.Schedules, violations)
}

func patience() time.Duration {
	d, err := time.ParseDuration(os.Getenv(envShrink))
	if err != nil {
		return 15 * time.Second
	}
	return d
}

func number(env string) uint64 {
	n, _ := strconv.ParseUint(os.Getenv(env), 10, 64)
	return n
}

// explore runs schedules of every n-th seed until one breaks something, time is up, or the
// last seed has run.
func explore(t *testing.T, from, every uint64, limit time.Duration) summary {
	t.Helper()
	s := newSummary()
	last := cmp.Or(number(envTo), math.MaxUint64)
	for end, seed := time.Now().Add(limit), from; seed <= last && time.Now().Before(end); seed += every {
		p := newPlan(seed)
		if os.Getenv(envCalls) != "" && !p.sendsAny() && !p.calls() {
			continue
		}
		r := simulate(t, p, newDice(p))
		s.Schedules++
		s.count(r)
		for _, spot := range r.spots {
			s.Spots[spot]++
		}
		for fault, n := range r.faults {
			s.Faults[fault] += n
		}
		if len(r.problems) > 0 {
			s.Violation = shrink(t, r, patience()).report(t.Name())
			break
		}
	}
	return s
}

func newSummary() summary {
	return summary{Spots: make(map[string]int), Faults: make(map[string]int), Effects: make(map[string]int)}
}

// count counts what a schedule has of messages and calls.
func (s *summary) count(r result) {
	for what, has := range map[string]bool{
		"schedules with messages": r.plan.sendsAny(), "schedules with relays": r.plan.relays > 0,
		"schedules with an inbox": r.plan.consumers > 0, "schedules with calls": r.plan.calls(),
		"schedules with both": r.plan.calls() && r.plan.sendsAny(),
	} {
		if has {
			s.Effects[what]++
		}
	}
	s.Effects["messages arrived"] += r.arrived
	s.Effects["messages arrived again"] += r.again
}

// spread runs a child for each core, as each uses one.
func spread(t *testing.T, from uint64, limit time.Duration) summary {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit+time.Minute)
	defer cancel()
	all := newSummary()
	var mu sync.Mutex
	var children sync.WaitGroup
	for n := range runtime.NumCPU() {
		children.Go(func() {
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSim$", "-test.timeout=0")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", envFrom, from+uint64(n)), fmt.Sprintf("%s=%d", envEvery, runtime.NumCPU()))
			out, err := cmd.CombinedOutput()
			s, ok := parse(string(out))
			mu.Lock()
			defer mu.Unlock()
			if !ok && all.Violation == "" {
				t.Errorf("child %d: %v\n%s", n, err, out)
			}
			all.add(s)
			if s.Violation != "" {
				cancel()
			}
		})
	}
	children.Wait()
	return all
}

func parse(out string) (s summary, ok bool) {
	_, line, found := strings.Cut(out, mark)
	line, _, _ = strings.Cut(line, "\n")
	return s, found && json.Unmarshal([]byte(line), &s) == nil
}

func (s *summary) add(o summary) {
	s.Schedules += o.Schedules
	s.Violation = cmp.Or(s.Violation, o.Violation)
	for k, n := range o.Spots {
		s.Spots[k] += n
	}
	for k, n := range o.Faults {
		s.Faults[k] += n
	}
	for k, n := range o.Effects {
		s.Effects[k] += n
	}
}

// report says what was tried, and which blind spots were never seen.
func report(t *testing.T, s summary) {
	t.Helper()
	for _, k := range slices.Sorted(maps.Keys(s.Faults)) {
		t.Logf("%8d x %s", s.Faults[k], k)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Effects)) {
		t.Logf("%8d x %s", s.Effects[k], k)
	}
	for _, spot := range spots {
		if n := s.Spots[spot.name]; n > 0 {
			t.Logf("%8d x blind spot: %s", n, spot.name)
		} else {
			t.Logf("   never   blind spot: %s", spot.name)
		}
	}
}

// tellOne runs one seed, and tells its story.
func tellOne(t *testing.T, seed uint64) {
	t.Helper()
	p := newPlan(seed)
	r := simulate(t, p, newDice(p))
	if len(r.problems) > 0 {
		t.Fatal(shrink(t, r, patience()).report(t.Name()))
	}
	t.Log("\n" + r.plan.String() + "\n" + r.text())
}

// seeds returns how many schedules a test runs, by default or by the environment.
func seeds(n uint64) uint64 { return cmp.Or(number("BELAY_SIM_SEEDS"), n) }

// TestSeedIsARun runs seeds twice: the same happens.
func TestSeedIsARun(t *testing.T) {
	for seed := range seeds(100) {
		p := newPlan(seed)
		first, second := simulate(t, p, newDice(p)), simulate(t, p, newDice(p))
		if a, b := first.text(), second.text(); a != b {
			t.Fatalf("seed %d: %s", seed, difference(a, b))
		}
		if replayed := simulate(t, p, &player{slices.Clone(first.choices)}); replayed.text() != first.text() {
			t.Fatalf("seed %d, replayed: %s", seed, difference(first.text(), replayed.text()))
		}
	}
}

// TestCrews runs schedules in which many share transactions, and time passes in their
// changes.
func TestCrews(t *testing.T) {
	crews := [][]string{{"slow combined take", "combined take"}, {"slow sale", "sale"}}
	for seed := range uint64(300) {
		p := newPlan(seed)
		for n, callers := range p.work {
			for c := range callers {
				p.work[n][c] = []spec{{work: workloadOf(crews[seed%2][c%2]), key: "k", wait: waits[2+(n+c)%2]}}
			}
		}
		p.policy, p.outbox, p.also, p.faults = guard.FailClosed, false, nil, 5
		if len(p.work[0]) < 3 {
			p.work[0] = append(p.work[0], p.work[0]...)
		}
		if r := simulate(t, p, newDice(p)); len(r.problems) > 0 {
			t.Fatal(shrink(t, r, patience()).report(t.Name()))
		}
	}
}

// TestRequests runs schedules of operations that serve requests.
func TestRequests(t *testing.T) {
	serving := slices.DeleteFunc(slices.Clone(themes), func(theme []string) bool { return !workloadOf(theme[0]).serves })
	for seed := range uint64(600) {
		p := newPlan(seed)
		theme, r := serving[seed%uint64(len(serving))], rand.New(rand.NewPCG(seed, 4))
		for _, callers := range p.work {
			for _, specs := range callers {
				for i := range specs {
					specs[i].work, specs[i].request = workloadOf(theme[r.IntN(len(theme))]), newRequest(r)
				}
			}
		}
		p.outbox, p.also, p.purges, p.faults = false, nil, seed%3 == 0, 5
		if r := simulate(t, p, newDice(p)); len(r.problems) > 0 {
			t.Fatal(shrink(t, r, patience()).report(t.Name()))
		}
	}
}

// TestCalls runs schedules of operations with a call in their middle.
func TestCalls(t *testing.T) {
	themes := slices.DeleteFunc(slices.Clone(themes), func(theme []string) bool { return !workloadOf(theme[0]).calls })
	for seed := range seeds(900) {
		p := newPlan(seed)
		theme, r := themes[seed%uint64(len(themes))], rand.New(rand.NewPCG(seed, 4))
		for _, callers := range p.work {
			for _, specs := range callers {
				for i := range specs {
					specs[i].work, specs[i].request = workloadOf(theme[r.IntN(len(theme))]), newRequest(r)
					specs[i].prints()
					specs[i].rest = rests[r.IntN(len(rests))]
				}
			}
		}
		p.until, p.outbox, p.also, p.purges, p.faults = untils[seed%2], false, nil, seed%3 == 0, 5
		if r := simulate(t, p, newDice(p)); len(r.problems) > 0 {
			t.Fatal(shrink(t, r, patience()).report(t.Name()))
		}
	}
}

// TestMessages runs schedules of operations that send messages, beside what else they do.
func TestMessages(t *testing.T) {
	themes := slices.DeleteFunc(slices.Clone(themes), func(theme []string) bool { return !workloadOf(theme[0]).sends })
	for seed := range seeds(600) {
		p := newPlan(seed)
		theme, r := themes[seed%uint64(len(themes))], rand.New(rand.NewPCG(seed, 4))
		p.outbox, p.also, p.relays = false, nil, 0
		p.allSend(r, theme)
		if r := simulate(t, p, newDice(p)); len(r.problems) > 0 {
			t.Fatal(shrink(t, r, patience()).report(t.Name()))
		}
	}
}

// allSend gives a plan operations of a theme, which send messages.
func (p plan) allSend(r *rand.Rand, theme []string) {
	for _, callers := range p.work {
		for _, specs := range callers {
			for i := range specs {
				s := &specs[i]
				s.work = workloadOf(theme[r.IntN(len(theme))])
				if s.sends = s.work.sends; s.work.serves {
					s.request = newRequest(r)
				}
				if s.work.calls {
					s.prints()
				}
			}
		}
	}
}

// TestRelays runs schedules whose messages are relayed, and handled by another service.
func TestRelays(t *testing.T) {
	themes := slices.DeleteFunc(slices.Clone(themes), func(theme []string) bool { return !workloadOf(theme[0]).sends })
	for seed := range seeds(300) {
		p := newPlan(seed)
		theme, r := themes[seed%uint64(len(themes))], rand.New(rand.NewPCG(seed, 4))
		p.outbox, p.also, p.purges, p.knobs.Pooler = false, nil, false, 0
		p.knobs.VisibleBeforeDurable = seed%2 == 0
		p.allSend(r, theme)
		p.mails()
		if r := simulate(t, p, newDice(p)); len(r.problems) > 0 {
			t.Fatal(shrink(t, r, patience()).report(t.Name()))
		}
	}
}

// TestRest runs schedules whose faults end early, of operations that wait for long.
func TestRest(t *testing.T) {
	for seed := range seeds(600) {
		p := newPlan(seed)
		for _, callers := range p.work {
			for _, specs := range callers {
				for i := range specs {
					specs[i].wait = waits[3]
				}
			}
		}
		p.calm, p.lasting = 5+int(seed%97), lasting(seed%uint64(noProcess+1))
		if r := simulate(t, p, newDice(p)); len(r.problems) > 0 {
			t.Fatal(shrink(t, r, patience()).report(t.Name()))
		}
	}
}

// difference is where two stories part.
func difference(a, b string) string {
	one, other := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range one {
		if i >= len(other) || one[i] != other[i] {
			return fmt.Sprintf("the stories part at line %d:\n%s\nand\n%s", i,
				strings.Join(one[max(0, i-10):min(i+3, len(one))], "\n"), strings.Join(other[max(0, i-3):min(i+3, len(other))], "\n"))
		}
	}
	return "one is longer"
}

// TestWorkloads: each operation works without faults, twice.
func TestWorkloads(t *testing.T) {
	for _, dialect := range []string{"mysql", "postgres"} {
		for _, work := range workloads {
			s := spec{work: work, key: "k"}
			if work.serves {
				s.request = request{id: "r", content: "a"}
			}
			if work.calls {
				s.rest = rests[2]
			}
			p := plan{dialect: dialect, server: personalities[dialect], outbox: work.boxed, until: untils[1], work: [][][]spec{{{s, s}}}}
			r := simulate(t, p, &player{})
			if story := r.text(); len(r.problems) > 0 || !strings.Contains(story, "returned: <nil>") {
				t.Errorf("%s: %v\n%s\n%s", dialect, r.problems, p, story)
			}
		}
	}
}
