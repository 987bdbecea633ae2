// Command belay-switch shows which engine keeps the locks of services that use package
// switchlock, and moves the locks to another engine.
//
//	BELAY_SWITCH_DSN="$DSN" belay-switch -record orders status
//	BELAY_SWITCH_DSN="$DSN" belay-switch -record orders -by alice to sql
//
// It connects to the database with the record only, and to no engine. So it does not check that
// the new engine works; and for a switch to or from etcd or ZooKeeper, use switchlock.Engine.To.
// Run it with -h for its flags.
//
// It exits with 0 when the switch is over, 1 if something failed, and 2 if its flags or
// environment are wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/cmd/internal/dsn"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	switch {
	case err == nil:
		return
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "belay-switch:", err)
	if errors.Is(err, errUsage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}

// errUsage is an error of the command line or of the environment.
var errUsage = errors.New("see belay-switch -h")

// A command is what the command line says.
type command struct {
	dsn, dialect, record string
	by                   string
	goneFor              time.Duration
	nowait               bool
	args                 []string
}

// notGone is the -gone-for of an engine that is not gone.
const notGone time.Duration = -1

const usage = `usage: belay-switch [flags] status
       belay-switch [flags] to ENGINE

status shows which engine keeps the locks. to moves the locks of all processes to ENGINE, which
is its name in switchlock.Config.Engines of the services, and waits until they have moved. An
interrupt ends the wait, not the switch. To go back, run it again with the old engine, at any
time. It does not check that ENGINE works.

Set the environment variable BELAY_SWITCH_DSN to the data source name of the database.

`

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	c := command{dsn: getenv("BELAY_SWITCH_DSN")}
	flags := flag.NewFlagSet("belay-switch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.dialect, "dialect", "", "of the database: mysql (also for MariaDB), postgres or sqlite; by default the DSN decides")
	flags.StringVar(&c.record, "record", "", "`name` of the record that the services give to sqllock.NewSource; required")
	flags.StringVar(&c.by, "by", getenv("USER"), "`who` makes the switch, for the record and logs")
	flags.DurationVar(&c.goneFor, "gone-for", notGone, "with to: how long the engine that keeps the locks now has been switched off; locks are granted again sooner then. Only if it is certainly off, and stays off until the switch is over: otherwise locks may have two holders")
	flags.BoolVar(&c.nowait, "no-wait", false, "with to: do not wait until the locks have moved")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	c.args = flags.Args()
	return c.run(ctx, stdout)
}

func (c command) run(ctx context.Context, stdout io.Writer) error {
	switch {
	case c.dsn == "":
		return fmt.Errorf("BELAY_SWITCH_DSN is not set: %w", errUsage)
	case c.record == "":
		return fmt.Errorf("-record is missing: %w", errUsage)
	case !utf8.ValidString(c.by):
		return fmt.Errorf("-by %q is not UTF-8: %w", c.by, errUsage)
	case c.goneFor < 0 && c.goneFor != notGone:
		return fmt.Errorf("-gone-for is %v: %w", c.goneFor, errUsage)
	}
	database := dsn.Source{Variable: "BELAY_SWITCH_DSN", Name: c.dsn, Dialect: c.dialect}
	source, closePool, err := open(database, c.record)
	if err != nil {
		return err
	}
	defer closePool()
	switch {
	case len(c.args) == 1 && c.args[0] == "status":
		return database.Mask(status(ctx, source, stdout))
	case len(c.args) == 2 && c.args[0] == "to":
		return database.Mask(c.to(ctx, source, stdout))
	}
	return fmt.Errorf("the arguments are %q, want status or to ENGINE: %w", c.args, errUsage)
}
