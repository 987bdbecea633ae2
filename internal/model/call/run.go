package call

import (
	"fmt"
	"strings"
)

// A Total is what Run has found.
type Total struct {
	States   int
	Found    int      // of the mutants
	Problems []string // violations, and steps that never happen
}

// Run searches the model in which the request is made again so often, and two faults happen, with
// and without a second process that would send something else. It also counts the mutants that the
// search finds.
func Run(repeats uint8) (t Total) {
	happened := make(map[string]bool)
	for _, other := range []bool{false, true} {
		r := Search(&Config{Repeats: repeats, Faults: 2, Other: other}, 0)
		t.States += r.States
		if r.Violation != nil {
			t.Problems = append(t.Problems, fmt.Sprintf("call: I%d are broken:\n%s", r.Broken, r.Violation))
		}
		for says := range r.Happened {
			happened[says] = true
		}
	}
	for _, a := range actions {
		weak := strings.Contains(a.says, "deletes P") || strings.Contains(a.says, "old program")
		if !weak && !happened[a.says] {
			t.Problems = append(t.Problems, "call: never happens, so it is not checked: "+a.says)
		}
	}
	for _, m := range mutants {
		cfg := m.config()
		if Search(&cfg, m.breaks).Violation == nil {
			t.Problems = append(t.Problems, "call: a mutant is not found: "+m.name)
			continue
		}
		t.Found++
	}
	return t
}

// String is the end of the last line of `make model`.
func (t Total) String() string {
	return fmt.Sprintf("call: %d states, %d invariants, %d of %d mutants found, %d problems",
		t.States, len(Invariants)-1, t.Found, len(mutants), len(t.Problems))
}
