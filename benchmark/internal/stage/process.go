package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	startLimit = 40 * time.Second
	stopLimit  = 20 * time.Second
)

// A process is a program that the run has started. It has a process group of
// its own: a Ctrl-C reaches the run alone, which then ends all in order.
type process struct {
	name   string
	log    string // file with its output
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, once exited
}

// start starts a program until Close. Its environment is that of this process and
// env.
func (s *Stage) start(name string, env []string, path string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(s.Dir, name+".log"), cmd: exec.Command(path, args...), exited: make(chan struct{})} //nolint:gosec,noctx // programs of the run, ended by stop
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	s.started = append(s.started, p)
	s.Later(func(context.Context) error { return p.stop() })
	return p, nil
}

// await waits for text in the program's output, and returns the rest of its line.
func (p *process) await(ctx context.Context, text string) (rest string, err error) {
	err = Poll(ctx, 20*time.Millisecond, startLimit, p.name+" is ready", func() (bool, error) {
		_, after, _ := strings.Cut(p.output(), text)
		line, _, whole := strings.Cut(after, "\n")
		rest = strings.TrimSpace(line)
		return whole, p.running()
	})
	if err != nil {
		return "", fmt.Errorf("%w:\n%s", err, p.output())
	}
	return rest, nil
}

// output is the end of what it has written.
func (p *process) output() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-4000):])
}

// running reports an error if the program has ended.
func (p *process) running() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s has ended (%w):\n%s", p.name, errors.Join(p.err, errors.New("see its output")), p.output())
	default:
		return nil
	}
}

// stop terminates the program, and kills it if it takes long.
func (p *process) stop() error {
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
