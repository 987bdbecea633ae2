//go:build failpoints

package failpoints_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/fail"
)

// patience bounds the life of a process. One that is to die has died long before.
const patience = 60 * time.Second

// roleVariable holds the role, as JSON, of a process that a test starts.
const roleVariable = "BELAY_FAILPOINTS_ROLE"

// A role is what a process of this program does instead of tests.
type role struct {
	Monitor *monitorRole
	Service *serviceRole
}

// process is a running role. Its output is shown if the test fails.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when it has ended

	mu    sync.Mutex
	said  []string // lines of standard output
	log   strings.Builder
	heard chan struct{} // has a token when a line came
}

// start starts a role, which dies at point if that is not empty.
func start(t *testing.T, name, point string, r role) *process {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: name, cmd: exec.Command(os.Args[0]), exited: make(chan struct{}), heard: make(chan struct{}, 1)}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+string(text), fail.Variable+"="+point)
	p.cmd.Stderr = &p.log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(stdout)
	t.Cleanup(p.end)
	return p
}

func (p *process) read(stdout io.Reader) {
	scanner := bufio.NewScanner(stdout)
	for scanner.Scan() {
		p.mu.Lock()
		p.said = append(p.said, scanner.Text())
		p.mu.Unlock()
		select {
		case p.heard <- struct{}{}:
		default:
		}
	}
	_ = p.cmd.Wait()
	close(p.exited)
}

// end kills the process if it still runs.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.exited
	if p.t.Failed() {
		p.t.Logf("%s said:\n%s\nand logged:\n%s", p.name, strings.Join(p.lines(), "\n"), p.log.String())
	}
}

func (p *process) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.said...)
}

// await waits until the process has said n lines that begin with a word, and returns what
// follows in each.
func (p *process) await(word string, n int) (rest []string) {
	p.t.Helper()
	late := time.After(patience)
	for {
		rest = nil
		for _, line := range p.lines() {
			if after, ok := strings.CutPrefix(line, word); ok {
				rest = append(rest, strings.TrimSpace(after))
			}
		}
		if len(rest) >= n {
			return rest
		}
		select {
		case <-p.heard:
		case <-p.exited:
			if len(p.heard) == 0 {
				p.t.Fatalf("%s has ended and not said %q", p.name, word)
			}
		case <-late:
			p.t.Fatalf("%s does not say %q", p.name, word)
		}
	}
}

// proceed lets a process that stands go on.
func (p *process) proceed() { _, _ = io.WriteString(p.stdin, "\n") }

// died waits until the process has killed itself. It reports false if it does not.
func (p *process) died() bool {
	select {
	case <-p.exited:
	case <-time.After(patience):
		return false
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// intercepted returns the event that the error of an operation has named.
func (p *process) intercepted() (id string, ok bool) {
	if p == nil {
		return "", false
	}
	for _, line := range p.lines() {
		if id, ok = strings.CutPrefix(line, "ended intercepted "); ok {
			return id, true
		}
	}
	return "", false
}
