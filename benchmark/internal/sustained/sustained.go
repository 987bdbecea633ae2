// Package sustained measures how methods bear a constant load: a curve over the
// number of users, for keys that are hot, uniform or Zipf's, and for repeats in
// sequence and at once.
package sustained

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/machine"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// Config describes a run.
type Config struct {
	Stage       stage.Config
	Methods     []shop.Method
	Concurrency []int
	Keys        []string
	Repeats     []string
	Duration    time.Duration
	Kill        time.Duration // kills a master this long after each step of belay began; 0 = never
	JSON        string
	Command     string
	Out         io.Writer
}

// ErrWrong: what users were told is not what the database has.
var ErrWrong = errors.New("the run found faults")

const (
	requestLimit = 90 * time.Second
	slice        = 250 * time.Millisecond
	plenty       = 1_000_000_000 // of each item: nothing is sold out
	items        = 1000          // that uniform and Zipf choose from
)

type run struct {
	cfg    Config
	stage  *stage.Stage
	result *result.Run
	items  []int64
	step   int
}

// Run runs all steps. It returns what it has measured, also when it was
// interrupted.
func Run(ctx context.Context, cfg Config) (_ *result.Run, err error) {
	r := &run{cfg: cfg}
	r.result = &result.Run{
		Kind: result.Sustained, Command: cfg.Command, Started: time.Now().UTC(), Rows: cfg.Stage.Rows,
		Instances: cfg.Stage.Instances, Balance: "none", Load: "built-in", Problems: []string{},
		Settings: map[string]string{"seconds of a step": cfg.Duration.String()},
	}
	if cfg.Stage.Nginx {
		r.result.Balance = "nginx"
	}
	if r.stage, err = stage.Open(ctx, cfg.Stage); err != nil {
		return r.result, err
	}
	defer func() { err = errors.Join(err, r.stage.Close()) }()
	r.result.Machine = machine.Describe(ctx, r.stage.DB, r.stage.Cluster.Addrs[0])
	if err := r.fillShelves(ctx); err != nil {
		return r.result, err
	}
	if err := r.all(ctx); err != nil {
		return r.result, err
	}
	r.result.Complete = true
	if err := r.write(); err != nil {
		return r.result, err
	}
	if len(r.result.Problems) > 0 {
		return r.result, fmt.Errorf("%w, %d in all; the first: %s", ErrWrong, len(r.result.Problems), r.result.Problems[0])
	}
	return r.result, nil
}

// all runs every step: methods side by side for each load.
func (r *run) all(ctx context.Context) error {
	for _, keys := range r.cfg.Keys {
		for _, repeats := range r.cfg.Repeats {
			for _, users := range r.cfg.Concurrency {
				for _, m := range r.cfg.Methods {
					if !r.wanted(m, keys, repeats) {
						continue
					}
					if err := r.one(ctx, m, keys, repeats, users); err != nil {
						return fmt.Errorf("%s with %d users: %w", m, users, err)
					}
				}
			}
		}
	}
	return nil
}

// wanted leaves out what would be the same again: repeats of an order say
// nothing about sales, nor about keys that come again by themselves.
func (r *run) wanted(m shop.Method, keys, repeats string) bool {
	return repeats == r.cfg.Repeats[0] || !m.Sells() && keys == Uniform
}

func (r *run) one(ctx context.Context, m shop.Method, keys, repeats string, users int) error {
	r.step++
	prefix := fmt.Sprintf("S%d-%04d", r.result.Started.Unix(), r.step)
	before, err := r.state(ctx, prefix)
	if err != nil {
		return err
	}
	killed := make(chan error, 1)
	step := result.Step{Method: string(m), Keys: keys, Repeats: repeats, Concurrency: users, Killed: -1}
	c := load.Constant{
		Users: users, Duration: r.cfg.Duration, Limit: requestLimit, Slice: slice,
		Source: newSource(r.stage, m, keys, repeats, prefix, r.items),
	}
	if r.cfg.Kill > 0 && m == shop.Belay {
		step.Killed = r.cfg.Kill.Seconds()
		c.Started = func(time.Time) { go func() { killed <- r.kill(ctx) }() }
	}
	t, err := c.Run(ctx)
	if t != nil && step.Killed >= 0 {
		err = errors.Join(err, <-killed)
	}
	if err != nil {
		return err
	}
	fill(&step, t)
	if err := r.audit(ctx, m, prefix, before, &step); err != nil {
		return err
	}
	r.result.Steps = append(r.result.Steps, step)
	fmt.Fprintf(r.cfg.Out, "%-13s %-8s %-8s %4d users %8.0f/s, mean %7.1f ms, p99 %8.1f ms, %d errors\n",
		m, keys, repeats, users, step.Throughput, step.Mean, step.P99, step.Results[string(shop.Failed)])
	if step.Killed >= 0 {
		if err := r.stage.Cluster.Heal(ctx); err != nil {
			return err
		}
	}
	return errors.Join(r.write(), r.stage.Running())
}

// kill kills a master when its time has come.
func (r *run) kill(ctx context.Context) error {
	masters, err := r.stage.Cluster.Masters(ctx)
	if err != nil {
		return err
	}
	timer := time.NewTimer(r.cfg.Kill)
	defer timer.Stop()
	select {
	case <-timer.C:
		return masters[r.step%len(masters)].Kill()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func fill(step *result.Step, t *load.Tally) {
	step.Requests, step.Seconds = t.Latency.Count(), result.Thousandths(t.Took.Seconds())
	step.Throughput = result.Thousandths(float64(step.Requests) / t.Took.Seconds())
	step.Mean = result.Thousandths(t.Latency.Mean())
	step.P50, step.P95, step.P99 = t.Latency.Quantile(0.5), t.Latency.Quantile(0.95), t.Latency.Quantile(0.99)
	step.Results, step.FirstError = make(map[string]int), t.FirstError
	for kind, n := range t.Results {
		step.Results[string(kind)] = n
	}
	for i, s := range t.Slices {
		step.Series = append(step.Series, result.Slice{
			At: float64(i+1) * slice.Seconds(), Throughput: float64(s.Latency.Count()) / slice.Seconds(),
			P50: s.Latency.Quantile(0.5), P99: s.Latency.Quantile(0.99), Errors: s.Errors,
		})
	}
}

func (r *run) write() error {
	if r.cfg.JSON == "" {
		return nil
	}
	return r.result.Write(r.cfg.JSON)
}
