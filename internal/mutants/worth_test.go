package mutants

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// slow is from how many seconds on a test that nothing names is listed.
const slow = 2

// A worth is what is known of a test: what only it notices, and what it takes.
type worth struct {
	test    string   // "folder.TestName"
	only    []string // mutants for which no other test is named
	shared  int      // mutants for which others are named, too
	faults  int      // rows of docs/faults.md that name it
	proves  bool     // docs/guarantees.md names it
	seconds float64  // 0: it was not run
}

func (w worth) named() bool { return len(w.only)+w.shared+w.faults > 0 || w.proves }

func (w worth) String() string {
	proves := " "
	if w.proves {
		proves = "p"
	}
	return fmt.Sprintf("%6.1f s  %-70s %s %2d faults, %2d mutants with others, alone: %s", w.seconds, w.test, proves, w.faults, w.shared, strings.Join(w.only, " "))
}

// TestWorth prints, from the output of go test -json in files, what each test is worth and what it
// takes, the slowest first; then those that take long and that neither a mutant nor a fault names.
func TestWorth(t *testing.T) {
	files, err := filepath.Glob(os.Getenv("BELAY_WORTH"))
	if err != nil || len(files) == 0 {
		t.Skip("BELAY_WORTH='/tmp/*.json' names files of go test -json")
	}
	all := worths(t)
	for _, file := range files {
		for test, took := range secondsIn(t, file) {
			w := all[test]
			w.test, w.seconds = test, took
			all[test] = w
		}
	}
	prove(t, all)
	sorted := slices.SortedFunc(maps.Values(all), func(a, b worth) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.test, b.test))
	})
	for _, named := range []bool{true, false} {
		n, sum := 0, 0.0
		for _, w := range sorted {
			if w.named() == named && (named || w.seconds >= slow) {
				t.Log(w)
				n, sum = n+1, sum+w.seconds
			}
		}
		t.Logf("%d tests, %.0f s, named by a mutant or a fault: %t", n, sum, named)
	}
}

// worths returns what the table and docs/faults.md say of tests.
func worths(t *testing.T) map[string]worth {
	t.Helper()
	all := make(map[string]worth)
	change := func(test string, f func(*worth)) {
		w := all[test]
		w.test = test
		f(&w)
		all[test] = w
	}
	for _, m := range table {
		for _, name := range m.testNames() {
			change(m.folder()+"."+name, func(w *worth) {
				if len(m.testNames()) == 1 {
					w.only = append(w.only, m.name)
				} else {
					w.shared++
				}
			})
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range testCommand.FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(strings.Trim(c[2], "'$^()"), "|") {
			change(path.Clean(c[1])+"."+name, func(w *worth) { w.faults++ })
		}
	}
	return all
}

// prove notes which tests docs/guarantees.md names.
func prove(t *testing.T, all map[string]worth) {
	t.Helper()
	promises, err := os.ReadFile(filepath.Join(root, "docs/guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for _, c := range testInText.FindAllStringSubmatch(string(promises), -1) {
		named[c[1]] = true
	}
	for test, w := range all {
		w.proves = named[path.Base(test)]
		all[test] = w
	}
}

var testInText = regexp.MustCompile("`([a-z0-9]+\\.Test\\w+)`")

var testCommand = regexp.MustCompile("`make test (?:ON=\\S+ )?PKG=(\\S+) RUN=([^`]+)`")

// secondsIn returns what the tests of an output took.
func secondsIn(t *testing.T, file string) map[string]float64 {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	took := make(map[string]float64)
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		var e struct {
			Action, Package, Test string
			Elapsed               float64
		}
		if json.Unmarshal(line, &e) == nil && e.Action == "pass" && e.Test != "" && !strings.Contains(e.Test, "/") {
			took[strings.TrimPrefix(e.Package, "github.com/belaygo/belay/")+"."+e.Test] = e.Elapsed
		}
		if errors.Is(err, io.EOF) {
			return took
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
