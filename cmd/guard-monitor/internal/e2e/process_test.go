package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testwait"
)

// build compiles a command of this module and returns the path of the program.
func build(t *testing.T, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// process is a running program. Its output is shown if the test fails.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when it has ended, with err
	err    error

	mu    sync.Mutex
	lines []string // of standard output
	log   bytes.Buffer
}

func start(t *testing.T, name string, env []string, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.log
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, scanner.Text())
			p.mu.Unlock()
		}
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.stop)
	return p
}

// stop ends the program and shows what it said if the test has failed.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s does not end on SIGTERM", p.name)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	if p.t.Failed() {
		p.t.Logf("%s said:\n%s\nand logged:\n%s", p.name, strings.Join(p.output(), "\n"), p.log.String())
	}
}

func (p *process) output() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

// await waits for a report of the given state and returns its result.
func (p *process) await(state string) (result string) {
	p.t.Helper()
	testwait.Until(p.t, p.name+" is in state "+state, func() bool {
		for _, line := range p.output() {
			var r struct{ State, Result string }
			if json.Unmarshal([]byte(line), &r) == nil && r.State == state {
				result = r.Result
				return true
			}
		}
		return false
	})
	return result
}

// proceed lets an instance that holds go on.
func (p *process) proceed() {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, "\n"); err != nil {
		p.t.Fatal(err)
	}
}

// finish waits until the program has ended well.
func (p *process) finish() {
	p.t.Helper()
	select {
	case <-p.exited:
		if p.err != nil {
			p.t.Fatalf("%s: %v", p.name, p.err)
		}
	case <-time.After(60 * time.Second):
		p.t.Fatalf("%s does not end", p.name)
	}
}
