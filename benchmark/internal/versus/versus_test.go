package versus

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == WorkerCommand { // started by TestRunMeasuresEveryCase
		if err := Work(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestRunMeasuresEveryCase(t *testing.T) {
	cases, err := Cases(strings.Join([]string{bareInsert, doInsert, doHalf, doRepeat, hotDo, hotDoCombined, saleForUpdate, saleDoCombined}, ","))
	if err != nil {
		t.Fatal(err)
	}
	cases = slices.DeleteFunc(cases, func(c Case) bool { return c.callers != 1 && c.callers != 64 })
	cfg := Config{
		Servers: stage.Servers{DSN: teststack.MySQL(t), Redis: teststack.Redis(t)}, Pool: 16, Cases: cases, Delay: 200 * time.Microsecond,
		Warm: 10 * time.Millisecond, Span: 300 * time.Millisecond, Rounds: 1, Out: io.Discard,
	}
	report, err := Run(t.Context(), cfg)
	for err == nil && slices.ContainsFunc(report.Figures, func(f Figures) bool { return f.Ops == 0 }) && cfg.Span < time.Minute {
		cfg.Span *= 4 // on a machine that has other work, nothing may end in so short a time
		report, err = Run(t.Context(), cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Figures) != 18 {
		t.Errorf("%d figures, want 18", len(report.Figures))
	}
	for _, f := range report.Figures {
		if f.Ops <= 0 || f.P50 <= 0 || f.P99 < f.P50 || f.Errors != 0 {
			t.Errorf("%+v", f)
		}
		if want := map[string]float64{bareInsert: 3, doInsert: 3, hotDo: 4, saleForUpdate: 5}[f.Case]; f.statements < want-0.1 { // others may use the server, too
			t.Errorf("%s at %d: %.2f statements per operation, want at least %v", f.Case, f.C, f.statements, want)
		}
	}
	if len(report.Targets) != 4 {
		t.Errorf("%d targets, want the 4 whose cases were run: %+v", len(report.Targets), report.Targets)
	}
}

// TestRunComparesAnswers: who is told that it is done, and it is not, ends the run.
func TestRunComparesAnswers(t *testing.T) {
	for name, kind := range map[string]way{"sold": {sells: true}, "ordered": {orders: true}} {
		kind.do = func(context.Context, *shop.Service, job, int64) shop.Answer { return shop.Answer{Result: shop.Done} }
		_, err := Run(t.Context(), Config{
			Servers: stage.Servers{DSN: teststack.MySQL(t), Redis: teststack.Redis(t)}, Pool: 16,
			Cases: []Case{{name, 1, 1, kind}}, Span: time.Millisecond, Rounds: 1, Out: io.Discard,
		})
		if err == nil || !strings.Contains(err.Error(), "were told that it is done, but 0 are sold and there are 0 orders") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownCase(t *testing.T) {
	if cases, err := Cases("do-insert,nothing"); err == nil {
		t.Errorf("no error, but %d cases", len(cases))
	}
}

// Only a case that repeats orders is to be refused, and never by an interception.
func TestRightAnswers(t *testing.T) {
	for result, repeats := range map[shop.Result]bool{
		shop.Done: true, shop.Busy: true, shop.Duplicate: true, shop.Intercepted: false, shop.Stale: false, shop.Failed: false,
	} {
		if got := (Case{way: way{repeats: true}}).right(result); got != repeats {
			t.Errorf("%s is right for a repeat: %v", result, got)
		}
		if got := (Case{}).right(result); got != (result == shop.Done) {
			t.Errorf("%s is right for another request: %v", result, got)
		}
	}
}

func TestTargets(t *testing.T) {
	key := func(name string, c int) caseKey { return caseKey{name, c, 1} }
	made := func(ours float64, p50 int64) round {
		return round{roundTrip: 100 * time.Microsecond, figures: map[caseKey]Figures{
			key(bareInsert, 1): {P50: 1000}, key(doInsert, 1): {P50: p50},
			key(bareInsert, 64): {Ops: 100}, key(doInsert, 64): {Ops: ours},
		}}
	}
	got := targets([]round{made(71, 1260), made(72, 1250), made(90, 1100)})
	if len(got) != 2 || got[0].Value != 0.72 || !got[0].Met || got[1].Value != 2.5 || !got[1].Met {
		t.Errorf("at the limits: %+v", got)
	}
	if got := targets([]round{made(71.8, 1260)}); got[0].Met || got[1].Met {
		t.Errorf("beyond the limits: %+v", got)
	}
}

// TestTargetsOfCombining: what callers who share transactions must be better at, beside
// FOR UPDATE, the atomic UPDATE and Do. A target that is missed is among them.
func TestTargetsOfCombining(t *testing.T) {
	figures := map[caseKey]Figures{
		{hotForUpdate, 64, 1}: {Ops: 100}, {hotAtomicUpdate, 64, 1}: {Ops: 300}, {hotDoCombined, 64, 1}: {Ops: 1000},
		{hotForUpdate, 64, 4}: {Ops: 100, P99: 1000}, {hotDoCombined, 64, 4}: {Ops: 399, P99: 1001},
		{hotDo, 1, 1}: {Ops: 100}, {hotDoCombined, 1, 1}: {Ops: 97},
		{saleForUpdate, 64, 1}: {Ops: 100}, {saleDoCombined, 64, 1}: {Ops: 299}, {hotForCombined, 64, 1}: {Ops: 500},
	}
	met := make(map[string]bool)
	for _, target := range targets([]round{{figures: figures}}) {
		met[target.Name] = target.Met
	}
	want := map[string]bool{
		"hot-do-combined at 64 / hot-for-update at 64, ops/s":         true,
		"hot-do-combined at 4 × 16 / hot-for-update at 4 × 16, ops/s": false,
		"hot-do-combined at 4 × 16 / hot-for-update at 4 × 16, p99":   false,
		"hot-do-combined at 64 / hot-atomic-update at 64, ops/s":      true,
		"hot-do-for-combined at 64 / hot-for-update at 64, ops/s":     true,
		"hot-do-combined at 1 / hot-do at 1, ops/s":                   true,
		"sale-do-combined at 64 / sale-for-update at 64, ops/s":       false,
	}
	if !maps.Equal(met, want) {
		t.Errorf("targets %v, want %v", met, want)
	}
}
