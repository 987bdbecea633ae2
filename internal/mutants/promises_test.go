package mutants

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// otherwise names the mutants for promises whose own tests take too long to be run for a
// mutant, by the beginning of their rows.
var otherwise = map[string][]string{
	"broker, network, relay or monitor fail": {"acknowledged-before-it-is-stored", "confirm-not-awaited", "event-counted-twice"},
	"the database is silent":                 {"no-limit-of-a-hold", "outcome-looked-for-without-end"},
}

// atRandom begins the row about all faults at once: no mutant is its own.
const atRandom = "all of that at random"

var namedTest = regexp.MustCompile("`(\\w+)\\.(Test\\w+)`")

// TestPromises: each row of the table of faults in docs/guarantees.md names a test that
// notices some mutant.
func TestPromises(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !namedTest.MatchString(cells[3]) {
			continue
		}
		rows++
		fault := strings.TrimSpace(cells[1])
		names := mutantsOf(t, fault, cells[3])
		if len(names) == 0 && !strings.HasPrefix(fault, atRandom) {
			t.Errorf("no mutant breaks what is promised for the fault %q", fault)
		}
		t.Logf("%s: %s", fault, strings.Join(names, ", "))
	}
	if rows < 30 {
		t.Errorf("%d rows were found", rows)
	}
}

// mutantsOf returns the mutants that the tests of a row notice.
func mutantsOf(t *testing.T, fault, shownBy string) (names []string) {
	t.Helper()
	for _, m := range table {
		for _, named := range namedTest.FindAllStringSubmatch(shownBy, -1) {
			if path.Base(m.folder()) == named[1] && slices.Contains(m.testNames(), named[2]) && !slices.Contains(names, m.name) {
				names = append(names, m.name)
			}
		}
	}
	for begin, others := range otherwise {
		if !strings.HasPrefix(fault, begin) {
			continue
		}
		for _, name := range others {
			if !slices.ContainsFunc(table, func(m mutant) bool { return m.name == name }) {
				t.Errorf("there is no mutant %s", name)
			}
		}
		names = append(names, others...)
	}
	return names
}
