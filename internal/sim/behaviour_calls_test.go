package sim

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	model "github.com/belaygo/belay/internal/model/call"
)

// followCalls runs a schedule, and follows it through a model that may be weak.
func followCalls(t *testing.T, seed uint64, weak model.Weakness) (*narrowCalls, result) {
	t.Helper()
	p, cfg := newTracedCalls(seed)
	cfg.Weak = weak
	n := &narrowCalls{dice: newDice(p), cfg: cfg, omitted: make(map[string]int)}
	r := simulate(t, p, n)
	if n.tracer.over {
		n.omitted["what follows a request of a third process or of another content"]++
	}
	return n, r
}

// TestCallTraces follows schedules of an operation with a call through the model of package call: whatever is
// seen must be what the model can do. They are always the same. Of 25,000 others, none has shown what the model
// lacks.
func TestCallTraces(t *testing.T) {
	if os.Getenv(envSeed) != "" {
		n, r := followCalls(t, number(envSeed), model.None)
		t.Logf("\n%s\n%s\n%v", r.plan, r.text(), n.tracer.err)
		return
	}
	first, count := cmp.Or(number(envTraces), 1), uint64(200)
	if os.Getenv(envTime) != "" {
		count = 2000
	}
	taken, idle, omitted := make(map[string]int), make(map[string]int), make(map[string]int)
	add := func(to, from map[string]int) {
		for what, times := range from {
			to[what] += times
		}
	}
	for seed := first; seed < first+count; seed++ {
		n, r := followCalls(t, seed, model.None)
		if n.tracer.err != nil || len(r.problems) > 0 {
			t.Fatalf("seed %d: %v\n%s\n%s\n%s\nagain: make sim SEED=%d", seed, n.tracer.err, strings.Join(r.problems, "\n"), r.plan, r.text(), seed)
		}
		add(taken, n.tracer.trace.Taken)
		add(idle, n.tracer.trace.Idle)
		add(omitted, n.omitted)
	}
	t.Logf("   never   actions of the model: %s", strings.Join(model.Never(taken), "; "))
	for _, what := range slices.Sorted(maps.Keys(idle)) {
		t.Logf("%8d x no action: %s", idle[what], what)
	}
	for _, what := range slices.Sorted(maps.Keys(omitted)) {
		t.Logf("%8d x left out of traces: %s", omitted[what], what)
	}
	t.Logf("%d schedules of calls are behaviours of the model", count)
}

// TestCallTracesBite follows schedules through models that lack a rule: the code must be caught at what they
// cannot do. The five other weaknesses only let the model do more than what the code does in these schedules.
func TestCallTracesBite(t *testing.T) {
	for _, bite := range []struct {
		name string
		weak model.Weakness
	}{
		{"takeover without lease", model.TakeoverWithoutLease},
		{"Until ignored", model.UntilIgnored},
		{"result not stored", model.ResultNotStored},
		{"call before the resolve of COMMIT 1", model.CallBeforeResolve},
		{"P is a claim", model.PendingInOnce},
		{"the call ends with the lock", model.CallEndsWithLock},
		{"no print", model.NoPrint},
		{"print not kept", model.PrintNotKept},
		{"a timeout is a refusal", model.TimeoutIsRefusal},
	} {
		t.Run(bite.name, func(t *testing.T) { caughtCalling(t, bite.weak) })
	}
}

func caughtCalling(t *testing.T, weak model.Weakness) {
	t.Helper()
	const most = 500
	for seed := range uint64(most) {
		if n, _ := followCalls(t, seed+1, weak); n.tracer.err != nil {
			what, _, _ := strings.Cut(fmt.Sprint(n.tracer.err), "\n")
			t.Logf("after %d schedules: %s", seed+1, what)
			return
		}
	}
	t.Errorf("%d schedules are behaviours of a model with that weakness", most)
}
