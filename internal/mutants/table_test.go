package mutants

import (
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testrepo"
)

// TestTable: each mutant still applies, and its tests exist.
func TestTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range table {
		t.Run(m.name, func(t *testing.T) {
			if seen[m.name] {
				t.Error("another mutant has this name")
			}
			seen[m.name] = true
			if m.old == m.new || !strings.HasSuffix(m.loses, ".") {
				t.Error("it changes nothing, or what it costs is no sentence")
			}
			if _, err := m.apply(); err != nil {
				t.Error(err)
			}
			if len(m.testNames()) == 0 {
				t.Error("no test is named")
			}
			known := testrepo.TestFunctions(t, m.folder())
			for _, name := range m.testNames() {
				if !slices.Contains(known, name) {
					t.Errorf("%s has no %s", m.folder(), name)
				}
			}
		})
	}
	if len(table) < 40 {
		t.Errorf("%d mutants, want at least 40", len(table))
	}
}
