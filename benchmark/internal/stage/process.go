package stage

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 40 * time.Second
	stopLimit  = 20 * time.Second
)

// A Process is a program that the run has started. It has a process group of
// its own: a Ctrl-C reaches the run alone, which then ends all in order.
type Process struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, once exited

	mu    sync.Mutex
	lines []string // the end of what it has written
	ready chan string
	find  string
}

// start starts a program. Its environment is that of this process and env.
func start(name string, env []string, path string, args ...string) (*Process, error) {
	p := &Process{name: name, cmd: exec.Command(path, args...), exited: make(chan struct{}), ready: make(chan string, 1)} //nolint:gosec,noctx // programs of the run, ended by stop
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(out)
	}()
	go func() {
		p.err = p.cmd.Wait()
		_ = in.Close()
		<-read
		close(p.exited)
	}()
	return p, nil
}

const keepLines = 20

func (p *Process) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSpace(line); line != "" {
			p.took(line)
		}
		if err != nil {
			return
		}
	}
}

func (p *Process) took(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines = append(p.lines, line); len(p.lines) > keepLines {
		p.lines = p.lines[1:]
	}
	if _, rest, ok := strings.Cut(line, p.find); ok && p.find != "" {
		select {
		case p.ready <- strings.TrimSpace(rest):
		default:
		}
	}
}

// await returns what follows text in the program's output.
func (p *Process) await(ctx context.Context, text string) (string, error) {
	p.mu.Lock()
	p.find = text
	earlier := p.lines
	p.lines = nil
	p.mu.Unlock()
	for _, line := range earlier {
		p.took(line)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case rest := <-p.ready:
		return rest, nil
	case <-p.exited:
		return "", fmt.Errorf("%s ended at once (%w):\n%s", p.name, errors.Join(p.err, errors.New("see its output")), p.output())
	case <-ctx.Done():
		return "", fmt.Errorf("%s is not ready: %w:\n%s", p.name, ctx.Err(), p.output())
	}
}

// output is the end of what it has written.
func (p *Process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b bytes.Buffer
	for _, line := range p.lines {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// running reports an error if the program has ended.
func (p *Process) running() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s has ended:\n%s", p.name, p.output())
	default:
		return nil
	}
}

// stop asks the program to end, and kills it if it takes long.
func (p *Process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("%s did not end within %v and was killed", p.name, stopLimit)
	}
}
