package versus

import (
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunMeasuresEveryCase(t *testing.T) {
	cases, err := Cases(strings.Join([]string{bareInsert, doInsert, doUpdate, doHalf, doRepeat}, ","))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Servers: stage.Servers{DSN: teststack.MySQL(t), Redis: teststack.Redis(t)}, Pool: 16, Cases: cases,
		Warm: 10 * time.Millisecond, Span: 300 * time.Millisecond, Rounds: 1, Out: io.Discard,
	}
	report, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Figures) != 11 {
		t.Errorf("%d figures, want 11", len(report.Figures))
	}
	for _, f := range report.Figures {
		if f.Ops <= 0 || f.P50 <= 0 || f.P99 < f.P50 || f.Errors != 0 {
			t.Errorf("%+v", f)
		}
		if want := map[string]float64{bareInsert: 3, doInsert: 3, doUpdate: 4}[f.Case]; f.statements < want-0.1 { // others may use the server, too
			t.Errorf("%s at %d: %.2f statements per operation, want at least %v", f.Case, f.C, f.statements, want)
		}
	}
	if len(report.Targets) != 4 {
		t.Errorf("%d targets, want the 4 whose cases were run: %+v", len(report.Targets), report.Targets)
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
		if got := (Case{repeats: true}).right(result); got != repeats {
			t.Errorf("%s is right for a repeat: %v", result, got)
		}
		if got := (Case{}).right(result); got != (result == shop.Done) {
			t.Errorf("%s is right for another request: %v", result, got)
		}
	}
}

func TestTargets(t *testing.T) {
	key := func(name string, c int) caseKey { return caseKey{name, c} }
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
