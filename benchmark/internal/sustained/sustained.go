// Package sustained measures how methods bear a constant load: a curve over the
// number of users, for keys that are hot, uniform or Zipf's, and for repeats in
// sequence and at once.
package sustained

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/wait"
)

// Config describes a run.
type Config struct {
	stage.Config
	Concurrency []int
	Keys        []string
	Repeats     []string
	Duration    time.Duration
	Kill        time.Duration // kills a master this long after each step of belay began; 0 = never
}

const (
	requestLimit = 30 * time.Second // longer is as good as broken
	slice        = 250 * time.Millisecond
	plenty       = 1_000_000_000 // of each item: nothing is sold out
	items        = 1000          // that uniform and Zipf choose from
)

type run struct {
	*stage.Trial
	cfg   Config
	items []int64 // that are sold
	list  string  // of them, in SQL
}

// Run runs all steps. It returns what it has measured, also when it was
// interrupted, and stage.ErrWrong when the answers to users do not agree with the
// database.
func Run(ctx context.Context, cfg Config) (*result.Run, error) {
	res := &result.Run{Kind: result.Sustained, Load: "built-in", Settings: map[string]string{
		"time of a step":                    cfg.Duration.String(),
		"database connections per instance": strconv.Itoa(cfg.Pool),
	}}
	r := &run{cfg: cfg}
	return res, stage.Run(ctx, cfg.Config, res, func(ctx context.Context, t *stage.Trial) error {
		r.Trial = t
		if err := r.fillShelves(ctx); err != nil {
			return err
		}
		return r.all(ctx)
	})
}

// all runs every step, and prints its figures.
func (r *run) all(ctx context.Context) error {
	steps := r.cfg.steps()
	fmt.Fprintf(r.Out, "%d steps of %v\n", len(steps), r.cfg.Duration)
	start := time.Now()
	for i, s := range steps {
		if err := r.one(ctx, i, &s); err != nil {
			return fmt.Errorf("%s with %d users: %w", s.Method, s.Concurrency, err)
		}
		left := time.Since(start) / time.Duration(i+1) * time.Duration(len(steps)-i-1)
		fmt.Fprintf(r.Out, "%3d/%d %-13s %-8s %-8s %4d users %8.0f/s, mean %7.1f ms, p99 %8.1f ms, %d errors; %v left\n",
			i+1, len(steps), s.Method, s.Keys, s.Repeats, s.Concurrency, s.Throughput, s.Mean, s.P99,
			s.Results[string(shop.Failed)], left.Round(time.Second))
	}
	return nil
}

// steps lists the steps: methods side by side for each load. What would be the
// same again is left out: repeats of an order say nothing about sales, nor about
// keys that come again by themselves.
func (c Config) steps() (all []result.Step) {
	for _, keys := range c.Keys {
		for i, repeats := range c.Repeats {
			for _, users := range c.Concurrency {
				for _, m := range c.Methods {
					if i > 0 && (m.Sells() || keys != Uniform) {
						continue
					}
					all = append(all, result.Step{Method: string(m), Keys: keys, Repeats: repeats, Concurrency: users, Killed: -1})
				}
			}
		}
	}
	return all
}

// one runs the n-th step.
func (r *run) one(ctx context.Context, n int, step *result.Step) error {
	m := shop.Method(step.Method)
	prefix := fmt.Sprintf("S%d-%04d", r.Result.Started.Unix(), n)
	before, err := r.state(ctx, prefix)
	if err != nil {
		return err
	}
	killed := make(chan error, 1)
	c := load.Constant{
		Users: step.Concurrency, Duration: r.cfg.Duration, Limit: requestLimit, Slice: slice,
		Next: newSource(r.Stage, m, step.Keys, step.Repeats, prefix, r.items).next,
	}
	if r.cfg.Kill > 0 && m == shop.Belay {
		step.Killed = r.cfg.Kill.Seconds()
		c.Started = func() { go func() { killed <- r.kill(ctx, n) }() }
	}
	t, err := c.Run(ctx)
	if t != nil && step.Killed >= 0 {
		err = errors.Join(err, <-killed)
	}
	if err != nil {
		return err
	}
	fill(step, t)
	if err := r.audit(ctx, m, prefix, before, step); err != nil {
		return err
	}
	r.Result.Steps = append(r.Result.Steps, *step)
	if step.Killed >= 0 {
		if err := r.Stage.Cluster.Heal(ctx); err != nil {
			return err
		}
	}
	return errors.Join(r.Write(), r.Stage.Running())
}

// kill kills a master when its time has come, in the n-th step another one.
func (r *run) kill(ctx context.Context, n int) error {
	masters, err := r.Stage.Cluster.Masters(ctx)
	if err != nil {
		return err
	}
	if err := wait.Sleep(ctx, r.cfg.Kill, nil); err != nil {
		return err
	}
	return masters[n%len(masters)].Kill()
}

func fill(step *result.Step, t *load.Tally) {
	step.Requests, step.Seconds = t.Latency.Count(), measure.Thousandths(t.Took.Seconds())
	step.Times = result.NewTimes(&t.Latency, t.Took)
	step.Results, step.FirstError = make(map[string]int), t.FirstError
	for kind, n := range t.Results {
		step.Results[string(kind)] = n
	}
	for i, s := range t.Slices {
		step.Series = append(step.Series, result.Slice{
			At: float64(i+1) * slice.Seconds(), Throughput: float64(s.Latency.Count()) / slice.Seconds(),
			P50: measure.Millis(s.Latency.Quantile(0.5)), P99: measure.Millis(s.Latency.Quantile(0.99)), Errors: s.Errors,
		})
	}
}
