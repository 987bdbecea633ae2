package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testproc"
)

// build compiles a command of this module and returns the path of the program.
func build(t *testing.T, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	if err := testproc.Build(".", pkg, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a running program.
type process struct {
	*testproc.Process

	t *testing.T
}

func start(t *testing.T, name string, env []string, path string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	p := &process{testproc.Start(t, name, cmd), t}
	t.Cleanup(p.stop)
	return p
}

// stop ends the program.
func (p *process) stop() {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Exited():
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s does not end on SIGTERM", p.Name())
	}
}

// await waits for a report of the given state and returns its result.
func (p *process) await(state string) (result string) {
	p.t.Helper()
	return parse(p.Await(state, func(line string) bool { return parse(line).State == state })).Result
}

// parse returns the report that a line is, if it is one.
func parse(line string) (r report) {
	_ = json.Unmarshal([]byte(line), &r)
	return r
}

// finish waits until the program has ended well.
func (p *process) finish() {
	p.t.Helper()
	select {
	case <-p.Exited():
		if err := p.Err(); err != nil {
			p.t.Fatalf("%s: %v", p.Name(), err)
		}
	case <-time.After(60 * time.Second):
		p.t.Fatalf("%s does not end", p.Name())
	}
}
