package lockhistory

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// jobVar has the test binary do a job in a process of its own.
const jobVar = "BELAY_LOCK_JOB"

// limit is how long anything may take.
const limit = 20 * time.Second

// Main does the job of this process, if a test has started it for one, and exits. TestMain
// calls it first. open returns the engine of a Job, and what closes it.
func Main(open func(where string) (lockengine.Engine, func(), error)) {
	text := os.Getenv(jobVar)
	if text == "" {
		return
	}
	if err := work(text, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work does a job until standard input ends, and prints its spans.
func work(text string, open func(where string) (lockengine.Engine, func(), error)) error {
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	e, closeEngine, err := open(j.Where)
	if err != nil {
		return err
	}
	defer closeEngine()
	l, err := lock.New(e, lock.Config{TTL: j.TTL, RequestTimeout: j.TTL / 2}) // the machine may be busy
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	out := json.NewEncoder(os.Stdout)
	j.Work(ctx, l, func(s Span) { _ = out.Encode(s) })
	end, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return l.Close(end)
}

// A Child is a process that does a job.
type Child struct {
	Lines chan Span // closed when it has printed all

	cmd    *exec.Cmd
	stdin  io.Closer
	killed atomic.Bool
}

// Start starts a process for the job, which ends with the test at the latest.
func Start(t *testing.T, j Job) *Child {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	c := &Child{cmd: exec.Command(os.Args[0]), Lines: make(chan Span, 1<<14)}
	c.cmd.Env = append(os.Environ(), jobVar+"="+string(text))
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin = stdin
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.Lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var s Span
			if err := json.Unmarshal(lines.Bytes(), &s); err == nil {
				c.Lines <- s
			} else if !c.killed.Load() {
				t.Errorf("a child printed %q", lines.Text())
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.stdin.Close()
		end := time.AfterFunc(2*limit, func() { _ = c.cmd.Process.Kill() })
		defer end.Stop()
		for range c.Lines { // so that it can print
			continue
		}
		<-read
		if err := c.cmd.Wait(); err != nil && !c.killed.Load() {
			t.Errorf("a child ended with %v", err)
		}
	})
	return c
}

// StartAll starts processes that want the same locks.
func StartAll(t *testing.T, j Job) (children []*Child) {
	t.Helper()
	for range 3 {
		children = append(children, Start(t, j))
	}
	return children
}

// Signal sends the process a signal.
func (c *Child) Signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if s == syscall.SIGKILL {
		c.killed.Store(true)
	}
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Next returns what the process prints next.
func (c *Child) Next(t *testing.T) Span {
	t.Helper()
	select {
	case s, ok := <-c.Lines:
		if !ok {
			t.Fatal("a child has ended")
		}
		return s
	case <-time.After(3 * limit):
		t.Fatal("a child gets no lock any more")
	}
	return Span{}
}

// Observe waits until each process has printed n more spans, and returns all of them.
func Observe(t *testing.T, children []*Child, n int) (spans []Span) {
	t.Helper()
	for _, c := range children {
		for range n {
			spans = append(spans, c.Next(t))
		}
	}
	return spans
}

// ObserveAfter waits until each process has got and released a lock after a time, and returns
// all spans until then.
func ObserveAfter(t *testing.T, children []*Child, after int64) (spans []Span) {
	t.Helper()
	for _, c := range children { // what it printed before may not have been read yet
		for again := false; !again; {
			s := c.Next(t)
			spans = append(spans, s)
			again = s.Got > after && s.End == Released
		}
	}
	return spans
}

// Stop has the process end its job, and does not wait for it.
func (c *Child) Stop() { _ = c.stdin.Close() }

// Finish ends the job and returns the spans that were not taken from Lines yet.
func (c *Child) Finish() (spans []Span) {
	c.Stop()
	for s := range c.Lines {
		if s.Key != begun {
			spans = append(spans, s)
		}
	}
	return spans
}
