package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	openLimit  = 30 * time.Second // until a worker is ready
	afterLimit = 20 * time.Second // from the end of a job's span to its answer
	closeLimit = 10 * time.Second // until a worker has ended
)

// A process is a worker process, seen from outside.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // closed at the end of its stdout
}

// start starts a worker for c and waits until it is ready.
func start(ctx context.Context, c contender, addrs []string) (*process, error) {
	command := append([]string(nil), c.command...)
	if len(command) > 0 {
		command = append(command, addrs...)
	} else {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("start worker: %w", err)
		}
		command = []string{self, "worker", c.name}
	}
	p := &process{lines: make(chan string)}
	p.cmd = exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // this program, or java
	p.cmd.Stderr = os.Stderr
	p.cmd.WaitDelay = closeLimit
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	p.in = in
	go p.read(out)

	line, err := p.line(ctx, openLimit)
	if err == nil && line != "ready" {
		err = fmt.Errorf("said %q", line)
	}
	if err != nil {
		p.end()
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return p, nil
}

func (p *process) read(out io.Reader) {
	defer close(p.lines)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.lines <- lines.Text()
	}
}

func (p *process) line(ctx context.Context, limit time.Duration) (string, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", errors.New("ended without an answer")
		}
		return line, nil
	case <-timer.C:
		return "", fmt.Errorf("no answer for %v", limit)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ask sends a job.
func (p *process) ask(j job) error {
	text, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode job: %w", err)
	}
	if _, err := fmt.Fprintf(p.in, "run %s\n", text); err != nil {
		return fmt.Errorf("ask worker: %w", err)
	}
	return nil
}

// answer waits for what a worker has to say to a job.
func (p *process) answer(ctx context.Context, j job) (outcome, error) {
	line, err := p.line(ctx, time.Until(j.to())+afterLimit)
	if err != nil {
		return outcome{}, fmt.Errorf("worker: %w", err)
	}
	text, ok := strings.CutPrefix(line, "done ")
	if !ok {
		return outcome{}, fmt.Errorf("worker: %s", line)
	}
	var o outcome
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return outcome{}, fmt.Errorf("worker: decode outcome: %w", err)
	}
	return o, nil
}

// end closes a worker's stdin and waits for it, killing it when it takes long.
func (p *process) end() {
	_ = p.in.Close()
	timer := time.AfterFunc(closeLimit, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	for range p.lines { // until its stdout is closed
	}
	_ = p.cmd.Wait()
}
