package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/balance"
	"github.com/belaygo/belay/benchmark/internal/seed"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

const defaultRows = 10_000_000

func rowsFlag(fs *flag.FlagSet) *int64 {
	return fs.Int64("rows", defaultRows, "size of the seeded tables")
}

func checkRows(rows int64) error {
	if rows < 1000 || rows > seed.MaxRows {
		return usagef("-rows %d: want 1000 to %d", rows, int64(seed.MaxRows))
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
func (f stageFlags) parsed() (cfg stage.Config, methods []shop.Method, err error) {
	if err := checkRows(*f.rows); err != nil {
		return cfg, nil, err
	}
	switch {
	case *f.instances < 1 || *f.instances > 100:
		return cfg, nil, usagef("-instances %d: want 1 to 100", *f.instances)
	case *f.pool < 1 || *f.pool**f.instances > 900:
		return cfg, nil, usagef("-pool %d: want at least 1, and at most 900 for all instances", *f.pool)
	case *f.lb != "nginx" && *f.lb != "none":
		return cfg, nil, usagef("-lb %q: want nginx or none", *f.lb)
	}
	if methods, err = shop.ParseMethods(*f.methods); err != nil {
		return cfg, nil, usagef("-methods: %w", err)
	}
	if *f.lb == "nginx" {
		if err := balance.FindNginx(); err != nil {
			return cfg, nil, err
		}
	}
	servers, err := stage.FromEnvironment()
	if err != nil {
		return cfg, nil, err
	}
	if err := f.writable(); err != nil {
		return cfg, nil, err
	}
	return stage.Config{
		Servers: servers, Rows: *f.rows, Instances: *f.instances, Pool: *f.pool, Nginx: *f.lb == "nginx", Out: os.Stderr,
	}, methods, nil
}

// writable makes sure now that the results can be written later.
func (f stageFlags) writable() error {
	if *f.json == "" {
		file, err := os.CreateTemp("", "belay-results-*.json")
		if err != nil {
			return fmt.Errorf("make a file for the results: %w", err)
		}
		*f.json = file.Name()
		return file.Close()
	}
	file, err := os.OpenFile(*f.json, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // the user names it
	if err != nil {
		return usagef("-json: %w", err)
	}
	return file.Close()
}

// commandLine is how the user can run this again.
func commandLine(args []string) string {
	return "go run ./benchmark " + strings.Join(args, " ")
}

// interrupted puts an end by Ctrl-C into words.
func interrupted(err error, json string, measured bool) error {
	if !measured {
		return errors.Join(errors.New("interrupted before anything was measured; all that was started is stopped"), err)
	}
	return fmt.Errorf("interrupted; all that was started is stopped, and what was measured so far is in %s", json)
}
