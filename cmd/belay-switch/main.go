// Command belay-switch shows which engine keeps the locks of services with switchlock, and has
// them move to another.
//
//	BELAY_SWITCH_DSN="$DSN" belay-switch -record orders status
//	BELAY_SWITCH_DSN="$DSN" belay-switch -record orders -by alice to sql
//
// It needs the database with the record, and no engine. Run it with -h for its flags.
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
	goneFor              time.Duration // less than 0 = the old engine is not gone
	nowait               bool
	args                 []string
}

const usage = `usage: belay-switch [flags] status
       belay-switch [flags] to ENGINE

status shows where locks are kept. to has all processes keep them in an engine, by the name that
the services have for it, and waits until they have moved; interrupt it at any time. It can be
run again to go back. The data source name comes from the environment: BELAY_SWITCH_DSN.

`

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	c := command{dsn: getenv("BELAY_SWITCH_DSN")}
	flags := flag.NewFlagSet("belay-switch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.dialect, "dialect", "mysql", "of the database: mysql (and MariaDB), postgres or sqlite")
	flags.StringVar(&c.record, "record", "", "`name` of the record, as the services give it to sqllock.NewSource")
	flags.StringVar(&c.by, "by", getenv("USER"), "`who` switches, for logs")
	flags.DurationVar(&c.goneFor, "gone-for", -1, "with to: the engine that keeps the locks now is switched off for so long, and stays so until this is over; locks are back the sooner")
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
	}
	source, closePool, err := open(c.dsn, c.dialect, c.record)
	if err != nil {
		return err
	}
	defer closePool()
	switch {
	case len(c.args) == 1 && c.args[0] == "status":
		return status(ctx, source, stdout)
	case len(c.args) == 2 && c.args[0] == "to":
		return c.to(ctx, source, stdout)
	}
	return fmt.Errorf("want status, or to ENGINE, not %q: %w", c.args, errUsage)
}
