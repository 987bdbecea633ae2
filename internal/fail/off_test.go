//go:build !failpoints

package fail_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPointIsRemoved looks at the assembly of a package that has points.
func TestPointIsRemoved(t *testing.T) {
	if n := calls(t, "-tags=failpoints"); n == 0 {
		t.Fatal("no call of Point is found even with the tag")
	}
	if n := calls(t); n != 0 {
		t.Errorf("%d calls of Point are left without the tag", n)
	}
}

func calls(t *testing.T, flags ...string) (n int) {
	t.Helper()
	args := append([]string{"build", "-gcflags=-S"}, flags...)
	build := exec.CommandContext(t.Context(), "go", append(args, "github.com/belaygo/belay/notify/rabbitmq")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as testproc.Build
	listing, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%.1000s", err, listing)
	}
	for line := range strings.Lines(string(listing)) {
		if strings.Contains(line, "CALL") && strings.Contains(line, "internal/fail.Point(") {
			n++
		}
	}
	return n
}
