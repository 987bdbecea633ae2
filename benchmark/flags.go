package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/report"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// errUsage is matched by errors about arguments: exit status 2.
var errUsage = errors.New("wrong usage")

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errUsage, fmt.Errorf(format, args...))
}

// parse parses flags; arguments after them are refused.
func parse(fs *flag.FlagSet, args []string) error {
	fs.SetOutput(os.Stderr)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if fs.NArg() > 0 {
		return usagef("%s takes no arguments after the flags", fs.Name())
	}
	return nil
}

const defaultRows = 10_000_000

func rowsFlag(flags *flag.FlagSet, rows *int64) {
	numberFlag(flags, rows, "rows", defaultRows, 1000, shop.MaxRows, "size of the seeded tables")
}

// numberFlag adds a flag that is a number from least to greatest.
func numberFlag[T int | int64](flags *flag.FlagSet, p *T, name string, value, least, greatest T, usage string) {
	*p = value
	flags.Func(name, fmt.Sprintf("%s (default %d)", usage, value), func(text string) (err error) {
		*p, err = number(text, least, greatest)
		return err
	})
}

// number reads a number from least to greatest.
func number[T int | int64](text string, least, greatest T) (T, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < int64(least) || n > int64(greatest) {
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, least, greatest)
	}
	return T(n), nil
}

// numbers reads a list of numbers with commas between them.
func numbers[T int | int64](list string, least, greatest T) (all []T, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := number(text, least, greatest)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// stageFlags adds the flags of a run on a stage. check completes cfg when they are
// parsed.
func stageFlags(flags *flag.FlagSet, cfg *stage.Config) (check func() error) {
	rowsFlag(flags, &cfg.Rows)
	numberFlag(flags, &cfg.Instances, "instances", 3, 1, 100, "processes of the service")
	numberFlag(flags, &cfg.Pool, "pool", 64, 1, 900, "database connections of each instance")
	lb := flags.String("lb", "nginx", "what spreads the requests: nginx, or none (each user has an instance)")
	methods := flags.String("methods", "", "methods to measure, with commas between them; empty = all")
	flags.StringVar(&cfg.JSON, "json", "", "file for the results (default: one in the folder for temporary files)")
	cfg.Out, cfg.Command = os.Stderr, commandLine(os.Args[1:])
	return func() (err error) {
		cfg.Nginx = *lb == "nginx"
		switch {
		case cfg.Pool*cfg.Instances > 900:
			return usagef("-pool %d: want at most 900 for all instances", cfg.Pool)
		case !cfg.Nginx && *lb != "none":
			return usagef("-lb %q: want nginx or none", *lb)
		}
		if cfg.Methods, err = shop.ParseMethods(*methods); err != nil {
			return usagef("-methods: %w", err)
		}
		if _, err = stage.FindNginx(); err != nil && cfg.Nginx {
			return err
		}
		if cfg.Servers, err = stage.FromEnvironment(stage.EnvDSN, stage.EnvAMQP, stage.EnvAPI); err != nil {
			return err
		}
		if cfg.JSON == "" {
			cfg.JSON = filepath.Join(os.TempDir(), fmt.Sprintf("belay-results-%d.json", time.Now().UnixNano()))
		}
		return checkOutput(cfg.JSON)
	}
}

// checkOutput makes sure now that results can be written to path later. Nothing is
// written to "".
func checkOutput(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // the user names it
	if errors.Is(err, fs.ErrNotExist) {
		if file, err = os.CreateTemp(filepath.Dir(path), ".results-*"); err == nil {
			defer os.Remove(file.Name())
		}
	}
	if err != nil {
		return usagef("-json: %w", err)
	}
	return file.Close()
}

// commandLine is how the user can run this again.
func commandLine(args []string) string {
	return "go -C benchmark run . " + strings.Join(args, " ")
}

// finish shows what was measured, and says where it is: also after a Ctrl-C or
// an error. err is that of the run.
func finish(ctx context.Context, run *result.Run, path string, err error) error {
	measured := len(run.Methods) > 0
	if measured {
		fmt.Println(report.Markdown(run))
		fmt.Fprintln(os.Stderr, "results:", path)
	}
	switch {
	case err == nil, run.Complete: // a Ctrl-C came too late to interrupt it
		return err
	case ctx.Err() != nil && measured:
		return fmt.Errorf("interrupted; what was measured so far is in %s (%w)", path, err)
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted before anything was measured (%w)", err)
	case measured:
		return fmt.Errorf("%w; what was measured so far is in %s", err, path)
	}
	return err
}
