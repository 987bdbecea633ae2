// Package testproc runs processes for tests: programs, and the test program itself again, to
// be paused and killed. Only tests import it.
//
//	p := testproc.Start(t, "victim", testproc.Self("BELAY_ROLE=victim"))
//	p.Await("stands", func(line string) bool { return line == "stands" })
//	p.Kill()
//
// TestMain looks whether the variable is set, and does what it says instead of tests.
package testproc

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/belaygo/belay/internal/testwait"
)

// Self returns the command that starts this test program again, with variables beside those
// of its own environment.
func Self(env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// A Process is a running process. It is killed when the test ends. What it said is logged
// if the test has failed.
type Process struct {
	tb     testing.TB
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{}
	err    error // to be read when it has exited

	mu    sync.Mutex
	lines []string // of standard output
	log   bytes.Buffer
}

// Start starts a command and keeps the lines of its standard output. Its standard error is
// kept, too, unless the command has a place for it.
func Start(tb testing.TB, name string, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{tb: tb, name: name, cmd: cmd, exited: make(chan struct{})}
	p.start(p.keepLines)
	return p
}

// StartReading is Start, but read gets the standard output, until its end.
func StartReading(tb testing.TB, name string, cmd *exec.Cmd, read func(io.Reader)) *Process {
	tb.Helper()
	p := &Process{tb: tb, name: name, cmd: cmd, exited: make(chan struct{})}
	p.start(read)
	return p
}

func (p *Process) start(read func(io.Reader)) {
	p.tb.Helper()
	if p.cmd.Stderr == nil {
		p.cmd.Stderr = &p.log
	}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		p.tb.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		p.tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.tb.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		read(stdout)
		p.err = p.cmd.Wait()
	}()
	p.tb.Cleanup(p.end)
}

func (p *Process) keepLines(stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		p.mu.Unlock()
	}
}

// end kills the process, also one that is paused, unless it has ended.
func (p *Process) end() {
	p.Kill()
	if said := strings.Join(p.Lines(), "\n"); p.tb.Failed() && said+p.log.String() != "" {
		p.tb.Logf("%s said:\n%s\nand logged:\n%s", p.name, said, p.log.String())
	}
}

// Name is the name that it was started with.
func (p *Process) Name() string { return p.name }

// ID is its process id.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Lines returns the lines of standard output so far.
func (p *Process) Lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// Await waits until the process has said a line of a kind, and returns the first one. The
// test ends if the process ends before.
func (p *Process) Await(what string, is func(line string) bool) string {
	p.tb.Helper()
	return p.AwaitAll(what, 1, is)[0]
}

// AwaitAll waits until the process has said n lines of a kind, and returns all that it has
// said.
func (p *Process) AwaitAll(what string, n int, is func(line string) bool) (found []string) {
	p.tb.Helper()
	testwait.Until(p.tb, p.name+" says "+what, func() bool {
		ended := p.HasExited() // all that it has said is read then
		found = slices.DeleteFunc(p.Lines(), func(line string) bool { return !is(line) })
		if ended && len(found) < n {
			p.tb.Fatalf("%s has ended and not said %s: %v", p.name, what, p.err)
		}
		return len(found) >= n
	})
	return found
}

// Proceed writes a line to its standard input.
func (p *Process) Proceed() { p.Say("") }

// Say writes text and the end of a line to its standard input. It is no error if the process
// has ended.
func (p *Process) Say(text string) { _, _ = io.WriteString(p.stdin, text+"\n") }

// CloseStdin closes its standard input.
func (p *Process) CloseStdin() { _ = p.stdin.Close() }

// Signal sends a signal. It is no error if the process has ended.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill kills the process, and returns when it has ended.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.exited
}

// Exited is closed when the process has ended and all that it said is read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// HasExited reports whether Exited is closed.
func (p *Process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Err is how the process ended: nil if well. It must have exited.
func (p *Process) Err() error { return p.err }

// WasKilled reports whether SIGKILL has ended the process. It must have exited.
func (p *Process) WasKilled() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
