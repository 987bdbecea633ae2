package chaos_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A report is a test that says at its very end once more what failed, behind all
// that was said meanwhile.
type report struct {
	*testing.T

	logs   string // the folder of the workers' logs and journals
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

func (r *report) keep(what string) { r.failed = append(r.failed, strings.TrimSpace(what)) }

func (r *report) Error(args ...any) {
	r.Helper()
	r.keep(fmt.Sprintln(args...))
	r.T.Error(args...)
}

func (r *report) Errorf(format string, args ...any) {
	r.Helper()
	r.keep(fmt.Sprintf(format, args...))
	r.T.Errorf(format, args...)
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
	for _, what := range r.failed {
		fmt.Println("belay chaos: failed:", what)
	}
}
