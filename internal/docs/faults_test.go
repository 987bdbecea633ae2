package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testrepo"
)

// A fault is a row of docs/faults.md.
type fault struct {
	layer, what, foundBy, again, promise string
}

var (
	testCommand    = regexp.MustCompile("`make test(?: ON=([a-z0-9]+))? PKG=\\./([a-z0-9/-]+) RUN=(Test\\w+)`")
	mutantsCommand = regexp.MustCompile("`make mutants MUTANTS=[a-z0-9,-]+`") // package mutants has the names
	server         = regexp.MustCompile(`(?m)^ {4}([a-z0-9 |]+)\)`)
)

// Each fault has a command that finds it again, of a test that exists, and a promise.
func TestFaults(t *testing.T) {
	faults, _ := readFaults(t)
	if len(faults) < 200 {
		t.Fatalf("docs/faults.md has %d faults", len(faults))
	}
	servers := servers(t)
	seen := make(map[string]bool)
	for _, f := range faults {
		if seen[f.what] {
			t.Errorf("%s: twice", f.what)
		}
		seen[f.what] = true
		if !strings.HasPrefix(f.promise, "[") || !strings.HasSuffix(f.what, ".") {
			t.Errorf("%s: no sentence, or %q is no link", f.what, f.promise)
		}
		commands := testCommand.FindAllStringSubmatch(f.again, -1)
		if len(commands) == 0 {
			t.Errorf("%s: no test", f.what)
		}
		for _, c := range commands {
			if c[1] != "" && !slices.Contains(servers, c[1]) {
				t.Errorf("%s: scripts/part knows no ON=%s", f.what, c[1])
			}
			if !testrepo.HasTest(t, c[2], c[3]) {
				t.Errorf("%s: %s has no %s", f.what, c[2], c[3])
			}
		}
		rest := mutantsCommand.ReplaceAllString(testCommand.ReplaceAllString(f.again, ""), "")
		if rest = strings.Trim(rest, ", "); rest != "" {
			t.Errorf("%s: %q is no command of make test or make mutants", f.what, rest)
		}
	}
}

// The table at the top of docs/faults.md counts its rows, by layer and by how they were found.
func TestFaultsAreCounted(t *testing.T) {
	faults, counted := readFaults(t)
	counts := make(map[[2]string]int)
	for _, f := range faults {
		for _, layer := range []string{f.layer, "all"} {
			counts[[2]string{layer, f.foundBy}]++
			counts[[2]string{layer, "all"}]++
		}
	}
	for of, n := range counts {
		if counted[of] != n {
			t.Errorf("docs/faults.md counts %d faults of %v, and has %d", counted[of], of, n)
		}
	}
	for of, n := range counted {
		if n > 0 && counts[of] == 0 {
			t.Errorf("docs/faults.md counts %d faults of %v, and has none", n, of)
		}
	}
}

// readFaults returns the rows of docs/faults.md, and what it counts by layer and finder.
func readFaults(t *testing.T) (faults []fault, counted map[[2]string]int) {
	t.Helper()
	counted = make(map[[2]string]int)
	layer, finders := "", []string(nil)
	for line := range strings.Lines(pages(t)["docs/faults.md"]) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			layer = strings.TrimSpace(title)
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case strings.HasPrefix(cells[0], "---"):
		case layer != "" && len(cells) == 4 && cells[0] != "what went wrong":
			faults = append(faults, fault{layer, cells[0], cells[1], cells[2], cells[3]})
		case layer == "" && len(cells) > 4 && finders == nil:
			finders = cells
		case layer == "" && len(cells) > 4 && len(cells) == len(finders):
			name := strings.TrimPrefix(strings.Split(cells[0], "]")[0], "[")
			for i, finder := range finders[1:] {
				n, err := strconv.Atoi(cells[i+1])
				if err != nil {
					t.Errorf("docs/faults.md: count of %s by %s: %v", name, finder, err)
				}
				counted[[2]string{name, finder}] = n
			}
		}
	}
	return faults, counted
}

// servers returns what make test takes as ON.
func servers(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "scripts/part"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range server.FindAllStringSubmatch(string(text), -1) {
		names = append(names, strings.Fields(strings.ReplaceAll(m[1], "|", " "))...)
	}
	return names
}
