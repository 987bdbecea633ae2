// Command belay-messages shows the messages of a service that wait, and settles its dead letters.
//
//	export BELAY_MESSAGES_DSN="$DSN"
//	belay-messages list
//	belay-messages retry 0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b
//	belay-messages drop 0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b
//
// It connects to the database of the service only. Run it with -h for its flags.
//
// It exits with 0 if all is done, 1 if something failed, 2 if its flags or environment are wrong, 3 if
// a message does not wait any more, and 4 if a message is undecided and -undecided is missing. Of
// several messages it settles those that it can, and 1 comes before 4, and 4 before 3.
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

	"github.com/belaygo/belay/cmd/internal/cli"
)

// Exit codes.
const (
	exitFailed    = 1
	exitUsage     = 2
	exitGone      = 3
	exitUndecided = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "belay-messages:", err)
	}
	os.Exit(exitCode(err))
}

// Errors that have an exit code of their own.
var (
	errUsage     = errors.New("see belay-messages -h")
	errGone      = errors.New("a message does not wait any more")
	errUndecided = errors.New("a message is undecided")
)

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errFailed):
		return exitFailed
	case errors.Is(err, errUndecided):
		return exitUndecided
	case errors.Is(err, errGone):
		return exitGone
	}
	return exitFailed
}

// A command is what the command line says.
type command struct {
	dsn, dialect string
	limit        int
	all, json    bool
	undecided    bool
	name         string
	ids          []string
}

// maxLimit is how many messages list shows at most: it has them in memory.
const maxLimit = 1_000_000

const usage = `usage: belay-messages [flags] status
       belay-messages [flags] list
       belay-messages [flags] retry ID...
       belay-messages [flags] drop ID...

status counts the messages that wait. list shows the dead letters: messages that wait until somebody decides,
while the other messages of their keys wait behind them. retry sends a message again, and then those
behind it. drop deletes a message for ever, and sends those behind it.

An undecided message may have taken effect: ask the called service for its ID first. If it has taken
effect, drop it. If it certainly has not, retry it with -undecided.

Before an ID that begins with a dash, write two: belay-messages drop -- ID.

Set the environment variable BELAY_MESSAGES_DSN to the data source name of the service's database.

`

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	c := command{dsn: getenv("BELAY_MESSAGES_DSN")}
	flags := flag.NewFlagSet("belay-messages", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.dialect, "dialect", "", "of the database: mysql (also for MariaDB), postgres or sqlite; by default the DSN decides")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	flags.BoolVar(&c.all, "all", false, "with list: show also messages that are tried again by themselves")
	flags.IntVar(&c.limit, "limit", 100, "with list: `number` of messages to show")
	flags.BoolVar(&c.undecided, "undecided", false, "with retry: also messages that may have taken effect. Only if the called service certainly has not done what they ask for: otherwise it may do it twice")
	words, err := cli.Parse(flags, args, errUsage)
	if err != nil {
		return err
	}
	if len(words) > 0 {
		c.name, c.ids = words[0], words[1:]
	}
	if err := c.validate(); err != nil {
		return err
	}
	return c.run(ctx, stdout)
}

func (c command) validate() error {
	switch {
	case c.name == "":
		return fmt.Errorf("the command is missing: status, list, retry or drop: %w", errUsage)
	case c.name != "status" && c.name != "list" && c.name != "retry" && c.name != "drop":
		return fmt.Errorf("the command is %q, want status, list, retry or drop: %w", c.name, errUsage)
	case c.takesIDs() && len(c.ids) == 0:
		return fmt.Errorf("%s needs the ID of a message: %w", c.name, errUsage)
	case !c.takesIDs() && len(c.ids) > 0:
		return fmt.Errorf("%s takes no %q: %w", c.name, c.ids, errUsage)
	case c.undecided && c.name != "retry":
		return fmt.Errorf("-undecided is for retry: %w", errUsage)
	case c.limit < 1 || c.limit > maxLimit:
		return fmt.Errorf("-limit is %d, want 1 to %d: %w", c.limit, maxLimit, errUsage)
	case c.dsn == "":
		return fmt.Errorf("BELAY_MESSAGES_DSN is not set: %w", errUsage)
	}
	return nil
}

func (c command) takesIDs() bool { return c.name == "retry" || c.name == "drop" }
