package call

import (
	"fmt"
	"testing"
)

func TestModel(t *testing.T) {
	total := Run(2)
	for _, problem := range total.Problems {
		t.Error(problem)
	}
	t.Log(total)
}

func TestMutants(t *testing.T) {
	bitten := make(map[int]bool)
	for _, m := range append(append([]mutant(nil), mutants...), others...) {
		t.Run(fmt.Sprintf("%s breaks I%d", m.name, m.breaks), func(t *testing.T) {
			cfg := m.config()
			r := Search(&cfg, m.breaks)
			if r.Violation == nil {
				t.Fatalf("I%d holds in %d states", m.breaks, r.States)
			}
			bitten[m.breaks] = true
			t.Logf("in %d states:\n%s", r.States, r.Violation)
		})
	}
	for n := range Invariants {
		if n > 0 && !bitten[n] {
			t.Errorf("nothing shows that I%d bites", n)
		}
	}
}
