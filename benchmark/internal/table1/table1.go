// Package table1 repeats the experiment of the paper: a crowd of users with one
// request each, several instances, and while the locks of Belay are in use, one
// Redis master dies. A request that holds a lock on that master then stands still
// in its transaction until another instance has written the same order: a lock
// failure that the database has to catch.
//
// Nothing is taken for granted: what was written is counted in the database,
// what was reported in the store of guard-monitor.
package table1

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// Config describes an experiment.
type Config struct {
	stage.Config
	Users  int // requests of a round
	Stock  int // items to sell
	Rounds int
	JMeter bool
}

// requestLimit bounds one request.
const requestLimit = 90 * time.Second

// experiment is one run.
type experiment struct {
	*stage.Trial
	cfg    Config
	load   loader
	gate   gate
	rounds map[shop.Method][]result.Round
	number int64  // of the last order
	ready  func() // called when the users of a round are there

	noted   int64       // position in the list of stored events
	guarded shop.Method // the last one of Belay's that was measured: late events are its
}

// loader sends the requests of a round. The samples are in no certain order.
type loader interface {
	Run(ctx context.Context, requests []load.Request) ([]load.Sample, error)
	Answered(ctx context.Context) (int, error) // how many so far
}

// Run runs the experiment. It returns what it has measured, also when it was
// interrupted, and stage.ErrWrong when it found faults.
func Run(ctx context.Context, cfg Config) (run *result.Run, err error) {
	e := &experiment{cfg: cfg, rounds: make(map[shop.Method][]result.Round)}
	run = &result.Run{Kind: result.Table1, Requests: cfg.Users, Load: "built-in", Settings: map[string]string{
		"stock":                             strconv.Itoa(cfg.Stock),
		"database connections per instance": strconv.Itoa(cfg.Pool),
	}}
	if cfg.JMeter {
		run.Load = "jmeter"
		if err := e.gate.serve(ctx, &e.cfg.Control); err != nil {
			return run, err
		}
		defer func() { err = errors.Join(err, e.gate.server.Close()) }()
	}
	return run, stage.Run(ctx, e.cfg.Config, run, e.run)
}

// run runs the rounds. Each begins with another method, so that none is always
// the first or always after the same one.
func (e *experiment) run(ctx context.Context, t *stage.Trial) error {
	e.Trial = t
	e.load = &load.Burst{Limit: requestLimit, Ready: func() { e.ready() }}
	if e.cfg.JMeter {
		e.load = &load.JMeter{Dir: t.Stage.Dir, Root: t.Stage.Root, Total: t.Stage.Answered, Ready: func() { e.ready() }}
		t.Result.Machine.Note("jmeter", load.JMeterVersion(ctx))
	}
	fmt.Fprintln(e.Out, "warming up")
	// A crowd as large as those to come opens every connection.
	if _, err := e.crowd(ctx, shop.UniqueIndex, e.cfg.Users); err != nil {
		return err
	}
	methods := e.cfg.Methods
	for n := range e.cfg.Rounds {
		for i := range methods {
			m := methods[(i+n)%len(methods)]
			r, err := e.round(ctx, m, n+1)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", m, n+1, err)
			}
			e.rounds[m] = append(e.rounds[m], r)
			if m.Guarded() {
				e.guarded = m
			}
			var killed string
			if r.Killed {
				killed = fmt.Sprintf(", a master killed, %d lock failures caught", r.Results[string(shop.Intercepted)])
			}
			fmt.Fprintf(e.Out, "round %d/%d %-13s mean %6.1f ms, p99 %6.1f ms, %6.0f/s, succeeded %d%s\n",
				n+1, e.cfg.Rounds, m, r.Mean, r.P99, r.Throughput, r.Succeeded, killed)
			if err := e.write(); err != nil {
				return err
			}
		}
		e.Result.Rounds = n + 1
	}
	if err := e.lateEvents(ctx); err != nil {
		return err
	}
	return e.write()
}

// write brings the results up to date and writes them.
func (e *experiment) write() error {
	e.Result.Methods = nil
	for _, m := range e.cfg.Methods {
		if rounds := e.rounds[m]; len(rounds) > 0 {
			e.Result.Methods = append(e.Result.Methods, result.Combine(string(m), m.Operation(), rounds))
		}
	}
	e.Result.Targets = result.Ratios(e.Result.Methods)
	return e.Write()
}

func (e *experiment) problem(m shop.Method, round int, format string, args ...any) {
	e.Fault("%s, round %d: %s", m, round, fmt.Sprintf(format, args...))
}
