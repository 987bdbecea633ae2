package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestMutants breaks Belay in each of the chosen ways, and wants a test to notice.
func TestMutants(t *testing.T) {
	which := os.Getenv("BELAY_MUTANTS")
	if which == "" {
		t.Skip("make mutants runs this")
	}
	chosen, err := choose(which)
	if err != nil {
		t.Fatal(err)
	}
	var killed atomic.Int64
	b, err := newBench(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan []mutant)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for group := range next {
				killed.Add(b.all(t, group))
			}
		})
	}
	for _, group := range byFolder(chosen) {
		next <- group
	}
	close(next)
	workers.Wait()
	t.Logf("belay mutants: %d of %d killed", killed.Load(), len(chosen))
}

// choose returns the mutants of a selection: all, ci, how many, or names.
func choose(which string) ([]mutant, error) {
	switch n, err := strconv.Atoi(which); {
	case which == "all":
		return table, nil
	case which == "ci":
		which = few
	case err == nil && n > 0:
		n = min(n, len(table))
		var some []mutant
		for i := range n {
			some = append(some, table[i*len(table)/n])
		}
		return some, nil
	}
	var named []mutant
	for name := range strings.SplitSeq(which, ",") {
		i := slices.IndexFunc(table, func(m mutant) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no mutant %q", name)
		}
		named = append(named, table[i])
	}
	return named, nil
}

// byFolder groups mutants by the folder of their tests, the largest group first. Packages
// can be tested beside each other, as go test does it, but not one beside itself.
func byFolder(all []mutant) (groups [][]mutant) {
	at := make(map[string]int)
	for _, m := range all {
		if _, ok := at[m.folder()]; !ok {
			at[m.folder()] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[m.folder()]] = append(groups[at[m.folder()]], m)
	}
	slices.SortStableFunc(groups, func(a, b []mutant) int { return len(b) - len(a) })
	return groups
}

// all tries the mutants of one folder one after the other, and returns how many were
// killed.
func (b bench) all(t *testing.T, group []mutant) (killed int64) {
	t.Helper()
	whole, err := b.compile(t.Context(), group[0], false)
	if err != nil {
		t.Errorf("%s: %v", group[0].folder(), err)
		return 0
	}
	sound := make(map[string]error) // by the tests
	for _, m := range group {
		if _, known := sound[m.tests]; !known {
			sound[m.tests] = b.passes(t.Context(), whole, m)
		}
		err := sound[m.tests]
		if err == nil {
			err = b.kill(t, m)
		}
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		killed++
	}
	return killed
}

// passes returns an error unless the tests of the mutant pass without it.
func (b bench) passes(ctx context.Context, binary string, m mutant) error {
	r, err := b.run(ctx, binary, m, patience)
	if err != nil {
		return err
	}
	for _, name := range m.testNames() {
		if r.passed && !slices.Contains(r.ran, name) {
			return fmt.Errorf("%s was not run", name)
		}
	}
	if !r.passed {
		return fmt.Errorf("%s fails without the mutant\n%s", r.failed, brief(r.output))
	}
	return nil
}

// kill returns an error unless a test notices the mutant.
func (b bench) kill(t *testing.T, m mutant) error {
	t.Helper()
	binary, err := b.compile(t.Context(), m, true)
	if err != nil {
		return err
	}
	defer os.Remove(binary)
	limit := patience
	if m.panics {
		limit = endless
	}
	r, err := b.run(t.Context(), binary, m, limit)
	switch {
	case err != nil:
		return err
	case r.passed:
		t.Logf("SURVIVED  %-38s %s", m.name, m.loses)
		return errors.New("no test notices it")
	case r.panicked && !m.panics:
		return fmt.Errorf("%s panics, or does not end in time\n%s", r.failed, brief(r.output))
	case r.failed == "":
		return fmt.Errorf("no test failed, and yet\n%s", brief(r.output))
	}
	t.Logf("killed    %-38s %-52s %5.1f s", m.name, path.Base(m.folder())+"."+r.failed, r.took.Seconds())
	return nil
}

// brief is an output without its middle.
func brief(output string) string {
	const begin, end = 1500, 1000
	if len(output) <= begin+end {
		return output
	}
	return output[:begin] + "\n[...]\n" + output[len(output)-end:]
}

// TestChoose: a selection is never empty, and a name that is none is an error.
func TestChoose(t *testing.T) {
	for which, want := range map[string]int{
		"all": len(table), "ci": 5, "3": 3, "100000": len(table), table[0].name: 1, table[0].name + "," + table[1].name: 2,
		"0": 0, "-1": 0, "no-such-mutant": 0, table[0].name + ",": 0,
	} {
		chosen, err := choose(which)
		if len(chosen) != want || (err == nil) != (want > 0) {
			t.Errorf("choose(%q) returns %d mutants, %v, want %d", which, len(chosen), err, want)
		}
	}
}
