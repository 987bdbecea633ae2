package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// How long the tests of a mutant may take, and those that are expected not to end.
const (
	patience = 3 * time.Minute
	endless  = 20 * time.Second
)

// A bench compiles and runs tests, with a mutant or without one.
type bench struct {
	dir     string            // for what it makes
	overlay map[string]string // of every build
}

// newBench makes a bench on which tests wait for a condition for a shorter time than usual:
// most mutants are noticed because something never happens.
func newBench(dir string) (bench, error) {
	b := bench{dir, make(map[string]string)}
	impatient := mutant{file: "internal/testwait/testwait.go", old: "limit = 2 * time.Minute", new: "limit = 20 * time.Second"}
	text, err := impatient.apply()
	if err != nil {
		return b, err
	}
	return b, b.replace(b.overlay, impatient.file, "testwait.go", text)
}

// compile makes the test binary of the mutant's folder. Without a mutation it is that of
// the tree.
func (b bench) compile(ctx context.Context, m mutant, mutated bool) (binary string, err error) {
	replace := maps.Clone(b.overlay)
	binary = filepath.Join(b.dir, strings.ReplaceAll(m.folder(), "/", "-")+".test")
	if mutated {
		binary = filepath.Join(b.dir, m.name+".test")
		text, err := m.apply()
		if err != nil {
			return "", err
		}
		if err := b.replace(replace, m.file, m.name+filepath.Ext(m.file), text); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(binary+".json", overlay, 0o600); err != nil {
		return "", err
	}
	mod, folder := module(m.folder())
	build := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-overlay", binary+".json", "-o", binary, folder)
	build.Dir = filepath.Join(root, mod)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	return binary, nil
}

// replace writes a file and puts it into an overlay.
func (b bench) replace(overlay map[string]string, file, name, text string) error {
	from, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		return err
	}
	overlay[from] = filepath.Join(b.dir, name)
	return os.WriteFile(overlay[from], []byte(text), 0o600)
}

// A result is how a run of tests ended.
type result struct {
	passed   bool
	failed   string // the test that turned red
	panicked bool   // or was not done in time
	ran      []string
	took     time.Duration
	output   string
}

var (
	ended   = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL): (Test\w+)`)
	running = regexp.MustCompile(`(?m)^=== RUN\s+(Test\w+)`)
	dead    = regexp.MustCompile(`(?m)^(panic:|fatal error:)`)
)

// run runs the tests of a binary where go test would run them, until limit.
func (b bench) run(ctx context.Context, binary string, m mutant, limit time.Duration) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	tests := exec.CommandContext(ctx, binary, "-test.run", m.pattern(), "-test.v", "-test.failfast",
		"-test.count=1", "-test.timeout", limit.String())
	tests.Dir = filepath.Join(root, m.folder())
	tests.WaitDelay = time.Second
	began := time.Now()
	out, err := tests.CombinedOutput()
	r := result{passed: err == nil, took: time.Since(began), output: string(out)}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return r, err
	}
	for _, test := range ended.FindAllStringSubmatch(r.output, -1) {
		if r.ran = append(r.ran, test[2]); test[1] == "FAIL" && r.failed == "" {
			r.failed = test[2]
		}
	}
	r.panicked = dead.MatchString(r.output) || ctx.Err() != nil
	if last := running.FindAllStringSubmatch(r.output, -1); r.panicked && len(last) > 0 && r.failed == "" {
		r.failed = last[len(last)-1][1]
	}
	if !r.passed && r.failed == "" && strings.Contains(r.output, "found unexpected goroutines") {
		r.failed = "TestMain"
	}
	return r, nil
}
