// Command belay-calls shows the requests of a service whose guard.Call is open, and stores what a
// person has found out about those that are undecided.
//
//	export BELAY_CALLS_DSN="$DSN"
//	belay-calls list
//	belay-calls accept 0d4c1e5f6a7b8c9d0e1f2a3b4c5d6e7f -result '"charge 7"'
//	belay-calls refuse 0d4c1e5f6a7b8c9d0e1f2a3b4c5d6e7f -result '"no money"'
//
// It calls no service and settles nothing: the next repeat of the request does, by the Settle of
// its Call. It connects to the database of the service only. Run it with -h for its flags.
//
// It exits with 0 if all is done, 1 if something failed, 2 if its flags or environment are wrong, 3 if
// the request is settled or has a result, and 4 if it may still be called for.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/belaygo/belay/cmd/internal/cli"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
	exitGone   = 3
	exitOpen   = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "belay-calls:", err)
	}
	os.Exit(exitCode(err))
}

// Errors that have an exit code of their own.
var (
	errUsage = errors.New("see belay-calls -h")
	errGone  = errors.New("the request is not undecided any more")
	errOpen  = errors.New("the request may still be called for")
)

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errGone):
		return exitGone
	case errors.Is(err, errOpen):
		return exitOpen
	}
	return exitFailed
}

// A command is what the command line says.
type command struct {
	dsn, dialect string
	limit        int
	all, json    bool
	replace      bool
	result       string
	given        []string // flags
	words        []string // the name of the command, and an ID
}

// Bounds of what it has in memory.
const (
	maxLimit  = 100_000
	maxResult = 1 << 20
)

const usage = `usage: belay-calls [flags] list
       belay-calls [flags] accept ID -result JSON
       belay-calls [flags] refuse ID -result JSON

list shows the requests that are undecided: no answer of the other service came in time, and Belay calls no
more. Ask the other service for the ID first: its calls had it.

accept stores that the service has done what was asked for, refuse that it has not, and never will. The
result is what Do of the guard.Call would have returned, or given to Refuse, as JSON. Then repeat the request:
its Settle gets the result, and the service is not called.

Set the environment variable BELAY_CALLS_DSN to the data source name of the service's database.

`

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	c := command{dsn: getenv("BELAY_CALLS_DSN")}
	flags := flag.NewFlagSet("belay-calls", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.dialect, "dialect", "", "of the database: mysql (also for MariaDB), postgres or sqlite; by default the DSN decides")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	flags.BoolVar(&c.all, "all", false, "with list: show also requests that a repeat settles")
	flags.IntVar(&c.limit, "limit", 100, "with list: `number` of requests to show")
	flags.StringVar(&c.result, "result", "", "with accept and refuse: what the service has answered, as `JSON`; null if Settle needs nothing")
	flags.BoolVar(&c.replace, "replace", false, "with accept and refuse: also a request that has a result, which the command prints without this flag. Only if Settle cannot read it, or somebody has stored a wrong one: it may be the answer of the service")
	var err error
	if c.words, err = cli.Parse(flags, args, errUsage); err != nil {
		return err
	}
	flags.Visit(func(f *flag.Flag) { c.given = append(c.given, f.Name) })
	if err := c.validate(); err != nil {
		return err
	}
	return c.run(ctx, stdout)
}

func (c command) validate() error {
	switch {
	case len(c.words) == 0:
		return fmt.Errorf("the command is missing: list, accept or refuse: %w", errUsage)
	case c.is("list"):
		if len(c.words) > 1 {
			return fmt.Errorf("list takes no %q: %w", c.words[1:], errUsage)
		}
		if c.has("result") || c.replace {
			return fmt.Errorf("-result and -replace are for accept and refuse: %w", errUsage)
		}
	case !c.is("accept") && !c.is("refuse"):
		return fmt.Errorf("the command is %q, want list, accept or refuse: %w", c.words[0], errUsage)
	case len(c.words) != 2:
		return fmt.Errorf("%s takes the ID of one request, not %q: %w", c.words[0], c.words[1:], errUsage)
	case !c.has("result"):
		return fmt.Errorf("-result is missing: what Do would have returned, as JSON, or null if Settle needs nothing: %w", errUsage)
	case !json.Valid([]byte(c.result)):
		return fmt.Errorf("-result is no JSON; a string needs double quotes within the shell's quotes: %w", errUsage)
	case len(c.result) > maxResult:
		return fmt.Errorf("-result has %d bytes, at most %d are stored: %w", len(c.result), maxResult, errUsage)
	}
	switch {
	case c.limit < 1 || c.limit > maxLimit:
		return fmt.Errorf("-limit is %d, want 1 to %d: %w", c.limit, maxLimit, errUsage)
	case c.dsn == "":
		return fmt.Errorf("BELAY_CALLS_DSN is not set: %w", errUsage)
	}
	return nil
}

func (c command) is(name string) bool { return c.words[0] == name }

func (c command) has(flag string) bool { return slices.Contains(c.given, flag) }
