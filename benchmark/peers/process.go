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
	"slices"
	"strings"
)

// A process is a worker process, seen from outside.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a worker for c and waits until it is ready. The end of ctx kills it.
func start(ctx context.Context, c contender, addrs []string) (*process, error) {
	command := slices.Concat(c.command, addrs)
	if c.command == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("start worker: %w", err)
		}
		command = []string{self, "worker", c.name}
	}
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...)} //nolint:gosec // this program, or java
	p.cmd.Stderr = os.Stderr
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if _, err := p.line("ready"); err != nil {
		p.end()
		return nil, fmt.Errorf("start %w", err)
	}
	return p, nil
}

// line reads a line that begins with a word, and returns the rest of it.
func (p *process) line(word string) (string, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("worker: ended without an answer: %w", err)
	}
	text, ok := strings.CutPrefix(line, word)
	if !ok {
		return "", fmt.Errorf("worker: %s", strings.TrimSpace(line))
	}
	return text, nil
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

// answer waits for the outcome of a job.
func (p *process) answer() (o outcome, err error) {
	text, err := p.line("done ")
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return o, fmt.Errorf("worker: decode outcome: %w", err)
	}
	return o, nil
}

// end closes a worker's stdin, which ends it, and waits for it.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
