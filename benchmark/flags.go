package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/report"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

const defaultRows = 10_000_000

func rowsFlag(fs *flag.FlagSet) *int64 {
	return fs.Int64("rows", defaultRows, "size of the seeded tables")
}

func checkRows(rows int64) error {
	if rows < 1000 || rows > shop.MaxRows {
		return usagef("-rows %d: want 1000 to %d", rows, int64(shop.MaxRows))
	}
	return nil
}

// stageFlags are what runs on a stage have in common.
type stageFlags struct {
	rows      *int64
	instances *int
	pool      *int
	lb        *string
	methods   *string
	json      *string
}

func newStageFlags(fs *flag.FlagSet, methods string) stageFlags {
	return stageFlags{
		rows:      rowsFlag(fs),
		instances: fs.Int("instances", 3, "processes of the service"),
		pool:      fs.Int("pool", 64, "database connections of each instance"),
		lb:        fs.String("lb", "nginx", "what spreads the requests: nginx, or none (each user has an instance)"),
		methods:   fs.String("methods", methods, "methods to measure, with commas between them; empty = all"),
		json:      fs.String("json", "", "file for the results (default: one in the folder for temporary files)"),
	}
}

// parsed checks the flags. The results get a file if the user named none.
func (f stageFlags) parsed() (cfg stage.TrialConfig, out output, err error) {
	if err := checkRows(*f.rows); err != nil {
		return cfg, out, err
	}
	switch {
	case *f.instances < 1 || *f.instances > 100:
		return cfg, out, usagef("-instances %d: want 1 to 100", *f.instances)
	case *f.pool < 1 || *f.pool**f.instances > 900:
		return cfg, out, usagef("-pool %d: want at least 1, and at most 900 for all instances", *f.pool)
	case *f.lb != "nginx" && *f.lb != "none":
		return cfg, out, usagef("-lb %q: want nginx or none", *f.lb)
	}
	if cfg.Methods, err = shop.ParseMethods(*f.methods); err != nil {
		return cfg, out, usagef("-methods: %w", err)
	}
	if *f.lb == "nginx" {
		if err := stage.FindNginx(); err != nil {
			return cfg, out, err
		}
	}
	servers, err := stage.FromEnvironment()
	if err != nil {
		return cfg, out, err
	}
	if out, err = openOutput(*f.json); err != nil {
		return cfg, out, err
	}
	cfg.Stage = stage.Config{
		Servers: servers, Rows: *f.rows, Instances: *f.instances, Pool: *f.pool, Nginx: *f.lb == "nginx", Out: os.Stderr,
	}
	cfg.JSON, cfg.Command, cfg.Out = out.path, commandLine(os.Args[1:]), os.Stderr
	return cfg, out, nil
}

// commandLine is how the user can run this again.
func commandLine(args []string) string {
	return "go run ./benchmark " + strings.Join(args, " ")
}

// finish shows what was measured, and says where it is: also after a Ctrl-C or
// an error. err is that of the run.
func finish(ctx context.Context, run *result.Run, out output, err error) error {
	measured := len(run.Methods)+len(run.Steps) > 0
	if measured {
		fmt.Println(report.Markdown(run))
		fmt.Fprintln(os.Stderr, "results:", out.path)
	} else {
		out.discard()
	}
	switch {
	case err == nil, run.Complete: // a Ctrl-C came too late to interrupt it
		return err
	case ctx.Err() != nil && measured:
		return fmt.Errorf("interrupted; what was measured so far is in %s (%w)", out.path, err)
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted before anything was measured (%w)", err)
	case measured:
		return fmt.Errorf("%w; what was measured so far is in %s", err, out.path)
	}
	return err
}
