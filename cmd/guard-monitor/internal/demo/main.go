// Demo is a flash sale with a lock that gets lost.
//
// 3 instances of a service sell 50 items to 1,000 requests that come at once;
// every second request repeats an earlier order number. When half of the items
// are sold, somebody deletes one lock in Redis while its holder works, and another
// instance finishes the same order meanwhile. The database refuses the order
// that comes second, and the monitor says what happened.
//
//	demo          Redis (miniredis), the database (SQLite), the broker and the
//	              monitor run in this process: it needs nothing but Go
//	demo -serve   goes on, with a little to do, and serves the monitor's page
//
// At the end the books are checked; the exit status is 1 if anything was oversold
// or duplicated, or if an alert is missing.
//
// Read shop.go first: it is what a user of Belay writes. instance.go puts a
// service together, story.go tells what happens. The rest is the crowd, the
// servers, the accident and the audit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	service   = "shop"
	items     = 50
	requests  = 1000
	instances = 3

	lockTTL      = time.Minute // renewed after a third of it: the story is over before
	heartbeat    = 10 * time.Second
	timeout      = 2 * time.Minute
	alertTimeout = 45 * time.Second
	closeTimeout = 10 * time.Second
)

func main() {
	redis.SetLogger(silence{}) // what its client says by itself
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], newScreen(os.Stdout, os.Getenv))
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "belay demo:", err)
		os.Exit(1)
	}
}

// silence is a logger of go-redis.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

var errUsage = errors.New("wrong arguments") // which flag has explained

func run(ctx context.Context, args []string, scr *screen) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	page := flags.Bool("serve", false, "then go on with a little to do, and serve the monitor's page")
	listen := flags.String("listen", "127.0.0.1:9440", "`address` of the page")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return errUsage
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "belay demo: %q is not a flag\n", flags.Arg(0))
		return errUsage
	}
	return sell(ctx, scr, *page, *listen)
}

// sell plays the story, and serves the page afterwards if that is asked for.
func sell(ctx context.Context, scr *screen, page bool, listen string) (err error) {
	e, err := openEmbedded(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if !page {
		return tell(ctx, "belay demo", e, scr)
	}
	ln, err := listenLocal(ctx, listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	if err := tell(ctx, "belay demo", e, scr); err != nil {
		return err
	}
	return e.serve(ctx, scr, ln)
}

var errTimeout = fmt.Errorf("not done after %v", timeout)

// tell plays on s within the time for it.
func tell(ctx context.Context, name string, s scene, scr *screen) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	return play(ctx, name, s, scr)
}
