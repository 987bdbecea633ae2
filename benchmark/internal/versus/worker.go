package versus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/belaygo/belay/benchmark/internal/link"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// WorkerCommand is the argument with which this program calls Work.
const WorkerCommand = "guard-worker"

// stopLimit is how long a worker may take to end before it is killed.
const stopLimit = 20 * time.Second

// A setup is what a process needs for its shop.
type setup struct {
	Servers  stage.Servers `json:"servers"`
	Database string        `json:"database"`
	Pool     int           `json:"pool"`
	Delay    time.Duration `json:"delay"`
}

// An answer is what a worker says to its setup and to each job.
type answer struct {
	Failed  string  `json:"failed"` // "" = nothing
	Outcome outcome `json:"outcome"`
}

// open returns a shop, which is ready. It ends with c.
func (s setup) open(ctx context.Context, c *shop.Closers) (*shop.Service, error) {
	cfg := shop.Config{
		Name: fmt.Sprint("guard-", os.Getpid()), DSN: s.Servers.DSN, Database: s.Database, Redis: s.Servers.Redis,
		Pool: s.Pool, Logger: slog.Default(),
	}
	if s.Delay > 0 {
		l, err := link.Open(s.Delay)
		if err != nil {
			return nil, err
		}
		c.Later(l.Close)
		cfg.Dial = l.Dial
	}
	service, err := shop.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c.Later(service.Close)
	return service, service.Ping(ctx)
}

// Work is a process of a case that has several. It reads a setup and then jobs, one line
// of JSON each, until in ends, and writes an answer to each.
func Work(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	var c shop.Closers
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	lines, answers := json.NewDecoder(in), json.NewEncoder(out)
	var s setup
	if err := lines.Decode(&s); err != nil {
		return fmt.Errorf("decode setup: %w", err)
	}
	service, err := s.open(ctx, &c)
	if err != nil {
		return errors.Join(err, answers.Encode(answer{Failed: err.Error()}))
	}
	if err := answers.Encode(answer{}); err != nil {
		return err
	}
	known := ways()
	for {
		var j job
		if err := lines.Decode(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("decode job: %w", err)
		}
		o := Case{name: j.Case, way: known[j.Case]}.crowd(ctx, service, j)
		if err := answers.Encode(answer{Outcome: o}); err != nil {
			return err
		}
	}
}

// A worker is such a process, seen from outside.
type worker struct {
	cmd     *exec.Cmd
	lines   *json.Encoder
	answers *json.Decoder
}

// start starts this program as a worker, and waits until it is ready. The end of its
// stdin ends it, with ctx or with c.
func start(ctx context.Context, c *shop.Closers, s setup) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	w := &worker{cmd: exec.CommandContext(ctx, self, WorkerCommand)} //nolint:gosec // this program
	w.cmd.Stderr = os.Stderr
	in, err1 := w.cmd.StdinPipe()
	out, err2 := w.cmd.StdoutPipe()
	w.cmd.Cancel, w.cmd.WaitDelay = func() error { return in.Close() }, stopLimit
	if err := errors.Join(err1, err2, w.cmd.Start()); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	w.lines, w.answers = json.NewEncoder(in), json.NewDecoder(out)
	c.Later(func(context.Context) error {
		_ = in.Close() // unless ctx has
		return w.cmd.Wait()
	})
	_, err = w.ask(s)
	return w, err
}

// ask sends a setup or a job, and waits for the answer.
func (w *worker) ask(line any) (outcome, error) {
	var a answer
	if err := w.lines.Encode(line); err != nil {
		return a.Outcome, fmt.Errorf("ask worker: %w", err)
	}
	if err := w.answers.Decode(&a); err != nil {
		return a.Outcome, fmt.Errorf("worker: %w", err)
	}
	if a.Failed != "" {
		return a.Outcome, fmt.Errorf("worker: %s", a.Failed)
	}
	return a.Outcome, nil
}
