package mutants

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var mutantsCommand = regexp.MustCompile("`make mutants MUTANTS=([^`]+)`")

// TestFaults: each mutant that docs/faults.md names is one of the table.
func TestFaults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := mutantsCommand.FindAllStringSubmatch(string(text), -1)
	if len(commands) < 50 {
		t.Errorf("docs/faults.md has %d commands of make mutants", len(commands))
	}
	for _, c := range commands {
		if _, err := choose(c[1]); err != nil {
			t.Errorf("docs/faults.md: %s: %v", c[0], err)
		}
	}
}
