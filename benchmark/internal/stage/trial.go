package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/result"
)

// A Trial is a run with its stage: its results are written as they come, and it lists
// the faults found.
type Trial struct {
	Stage  *Stage
	Result *result.Run
	Out    io.Writer // for the progress

	json string
}

// ErrWrong is returned by Run when something was duplicated, oversold or lost, or an
// event is missing.
var ErrWrong = errors.New("the run found faults")

// Run sets the stage, has body measure, and takes the stage down again. It completes
// run, also when it was interrupted, and returns ErrWrong when faults were found.
func Run(ctx context.Context, cfg Config, run *result.Run, body func(context.Context, *Trial) error) (err error) {
	t := &Trial{Result: run, Out: cfg.Out, json: cfg.JSON}
	run.Command, run.Started, run.Problems = cfg.Command, time.Now().UTC(), []string{}
	run.Rows, run.Instances, run.Balance = cfg.Rows, cfg.Instances, "none"
	if cfg.Nginx {
		run.Balance = "nginx"
	}
	if t.Stage, err = Open(ctx, cfg); err != nil {
		return err
	}
	defer func() {
		fmt.Fprintln(t.Out, "stopping all that was started")
		err = errors.Join(err, t.Stage.Close(ctx))
	}()
	run.Machine = t.machine(ctx)
	if err := body(ctx, t); err != nil {
		return err
	}
	run.Complete = true
	if err := t.Write(); err != nil {
		return err
	}
	if n := len(run.Problems); n > 0 {
		return fmt.Errorf("%w, %d in all; the first: %s", ErrWrong, n, run.Problems[0])
	}
	return nil
}

func (t *Trial) machine(ctx context.Context) measure.Machine {
	m := measure.Describe(ctx)
	redis, _ := measure.RedisServer(ctx, t.Stage.Cluster.Addrs[0])
	m.Note("redis", redis["redis_version"])
	var version string
	_ = t.Stage.DB.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	m.Note("mariadb", version)
	if t.Result.Balance == "nginx" {
		m.Note("nginx", measure.NginxVersion(ctx))
	}
	return m
}

// Write writes the results as they are now.
func (t *Trial) Write() error { return measure.WriteJSON(t.json, t.Result) }

// Fault notes that something is wrong.
func (t *Trial) Fault(format string, args ...any) {
	fault := fmt.Sprintf(format, args...)
	t.Result.Problems = append(t.Result.Problems, fault)
	fmt.Fprintln(t.Out, "fault:", fault)
}
