package main_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/testproc"
)

// limit bounds every wait; it is reached only when something is broken.
const limit = 30 * time.Second

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "guard-monitor")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "guard-monitor")
	if err := testproc.Build(".", ".", binary); err != nil {
		os.RemoveAll(dir)
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// process is a guard-monitor that runs.
type process struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr *output
	exited         chan struct{}
}

// start runs the binary in a folder of its own with only env as environment,
// and kills it when the test ends.
func start(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := &process{
		t: t, cmd: exec.Command(binary, args...),
		stdout: new(output), stderr: new(output), exited: make(chan struct{}),
	}
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the exit code is read from ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("standard output:\n%s\nstandard error:\n%s", p.stdout, p.stderr)
		}
	})
	return p
}

// settings returns the path of a file with the settings.
func settings(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guard-monitor.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.t.Fatal("guard-monitor does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop sends sig and expects exit code 0.
func (p *process) stop(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		p.t.Fatalf("exit code %d after %v, want 0", code, sig)
	}
}

// url returns the address that the process printed.
func (p *process) url() string {
	p.t.Helper()
	const mark = "guard-monitor: listening on "
	var url string
	p.eventually("the address is printed", func() bool {
		_, rest, found := strings.Cut(p.stderr.String(), mark)
		line, _, ended := strings.Cut(rest, "\n")
		url = line
		return found && ended
	})
	return url
}

func (p *process) get(path string) (code int, body string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Close = true // leave no idle connection behind
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (p *process) healthy() bool {
	p.t.Helper()
	code, _ := p.get("/healthz")
	return code == http.StatusOK
}

// metric reports whether /metrics has the line.
func (p *process) metric(line string) bool {
	p.t.Helper()
	_, body := p.get("/metrics")
	return strings.Contains("\n"+body, "\n"+line+"\n")
}

// eventually polls until cond holds.
func (p *process) eventually(what string, cond func() bool) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(limit)
	for !cond() {
		select {
		case <-p.exited:
			if cond() {
				return
			}
			p.t.Fatalf("guard-monitor ended before this: %s", what)
		case <-late:
			p.t.Fatalf("not in %v: %s", limit, what)
		case <-tick.C:
		}
	}
}

// output gathers what a process writes.
type output struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	drops bool // what is more than it takes; else that fails
}

func (o *output) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drops = true
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.buf.Len() <= 1<<20:
	case o.drops:
		return len(b), nil
	default:
		return 0, errors.New("the process writes too much")
	}
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
