package teststack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A Clock is what servers that are started with its Env take for the time.
type Clock struct {
	Env []string

	tb   testing.TB
	file string
}

// NewClock returns a clock that is right. It needs a C compiler, as the race detector does.
func NewClock(tb testing.TB) *Clock {
	tb.Helper()
	dir := tb.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // PostgreSQL has a user of its own
		if err := os.Chmod(d, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	c := &Clock{tb: tb, file: filepath.Join(dir, "clock")}
	lib := filepath.Join(dir, "clock.so")
	source := filepath.Join(root(), "internal", "teststack", "testdata", "clock.c")
	if out, err := exec.Command(Program(tb, "gcc", "gcc"), "-shared", "-fPIC", "-O1", "-o", lib, source).CombinedOutput(); err != nil {
		tb.Fatalf("gcc: %v\n%s", err, out)
	}
	c.Env = []string{"LD_PRELOAD=" + lib, "BELAY_TEST_CLOCK=" + c.file}
	c.Set(0)
	return c
}

// Set has the clock be off by so much: an hour is ahead.
func (c *Clock) Set(off time.Duration) {
	c.tb.Helper()
	if err := os.WriteFile(c.file, fmt.Appendln(nil, int(off.Seconds())), 0o644); err != nil {
		c.tb.Fatal(err)
	}
}
