package chaos_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A report is a test that says at its very end once more what failed, behind all
// that was said meanwhile. Without a test it only keeps it.
type report struct {
	*testing.T

	logs string // the folder of the workers' logs and journals
	seed uint64

	mu     sync.Mutex
	failed []string
}

func newReport(t *testing.T) *report {
	t.Helper()
	r := &report{T: t}
	var err error
	if r.logs, err = os.MkdirTemp("", "belay-chaos-"); err != nil { //nolint:usetesting // it stays when the test has failed
		t.Fatal(err)
	}
	t.Cleanup(r.end) // the first one is called last
	return r
}

// file makes a file that stays when the test has failed.
func (r *report) file(name string) *os.File {
	r.Helper()
	f, err := os.Create(filepath.Join(r.logs, name))
	if err != nil {
		r.Fatal(err)
	}
	return f
}

// keepJSON makes a file of values, one on each line.
func (r *report) keepJSON(name string, values ...any) {
	r.Helper()
	f := r.file(name)
	defer f.Close()
	for _, v := range values {
		if err := json.NewEncoder(f).Encode(v); err != nil {
			r.Error(err)
		}
	}
}

// write makes a file of the plan.
func (r *report) write(name string, p plan) {
	r.Helper()
	f := r.file(name)
	defer f.Close()
	for i, track := range p {
		for _, s := range track {
			fmt.Fprintln(f, i, s)
		}
	}
}

func (r *report) keep(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, strings.TrimSpace(what))
}

// violations is how many things were found to be wrong so far.
func (r *report) violations() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failed)
}

// await fails the test if cond does not hold soon, and goes on then: what is missing is
// judged.
func (r *report) await(what string, cond func() bool) {
	r.Helper()
	r.awaitFor(time.Minute, what, cond)
}

// awaitFor is await for what may take longer, or less.
func (r *report) awaitFor(d time.Duration, what string, cond func() bool) {
	r.Helper()
	for until := time.Now().Add(d); !cond(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(until) {
			r.Errorf("it never happened: %s", what)
			return
		}
	}
}

// Helper is testing.T's.
func (r *report) Helper() {
	if r.T != nil {
		r.T.Helper()
	}
}

func (r *report) Error(args ...any) {
	r.Helper()
	r.keep(fmt.Sprintln(args...))
	r.T.Error(args...)
}

func (r *report) Errorf(format string, args ...any) {
	r.Helper()
	r.keep(fmt.Sprintf(format, args...))
	if r.T != nil {
		r.T.Errorf(format, args...)
	}
}

// Logf is testing.T's.
func (r *report) Logf(format string, args ...any) {
	if r.T != nil {
		r.Helper()
		r.T.Logf(format, args...)
	}
}

func (r *report) Fatal(args ...any) {
	r.Helper()
	r.keep(fmt.Sprintln(args...))
	r.T.Fatal(args...)
}

func (r *report) Fatalf(format string, args ...any) {
	r.Helper()
	r.keep(fmt.Sprintf(format, args...))
	r.T.Fatalf(format, args...)
}

func (r *report) end() {
	if !r.Failed() {
		_ = os.RemoveAll(r.logs)
		return
	}
	fmt.Printf("belay chaos: failed; the workers' logs, journals and the faults are in %s\n", r.logs)
	fmt.Printf("belay chaos: to judge them again: BELAY_CHAOS_JUDGE=%s go test -v -run TestChaos ./internal/chaos\n", r.logs)
	fmt.Printf("belay chaos: the plan of its faults: %s=%d, in %s\n", seedName, r.seed, planFile)
	for _, what := range r.failed {
		fmt.Println("belay chaos: failed:", what)
	}
}
