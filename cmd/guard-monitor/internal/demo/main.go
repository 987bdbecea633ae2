// Demo is a flash sale with a lock that gets lost.
//
// 3 instances of a service sell 50 items to 1000 requests that come at once;
// every second request repeats an earlier order number. When half of the items
// are sold, somebody deletes one lock in Redis while its holder works, and another
// instance finishes the same order meanwhile. The database refuses the order
// that comes second, and the monitor says what happened.
//
//	demo          Redis (miniredis), the database (SQLite), the broker and the
//	              monitor run in this process: it needs nothing but Go
//	demo -serve   then keeps the shop a little busy, and serves the monitor's page
//	demo -record FILE
//	              then copies the monitor's database to a new file, for guard-monitor export
//
// At the end the books are checked; the exit status is 1 if anything was oversold
// or duplicated, or if the alert is missing.
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

	"github.com/redis/go-redis/v9/logging"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

const (
	service   = "shop"
	items     = 50
	requests  = 1000
	instances = 3

	lockTTL      = time.Minute // renewed after a third of it: the story is over before
	beat         = 10 * time.Second
	timeout      = 2 * time.Minute
	alertTimeout = 45 * time.Second
	closeTimeout = 10 * time.Second
)

func main() {
	page := flag.Bool("serve", false, "then go on with a little to do, and serve the monitor's page")
	listen := flag.String("listen", "127.0.0.1:9440", "`address` of the page")
	record := flag.String("record", "", "then copy the monitor's database to this new `file`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "belay demo: %q is not a flag\n", flag.Arg(0))
		os.Exit(2)
	}
	logging.Disable() // of the Redis client
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &screen{out: os.Stdout}, *page, *listen, *record)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "belay demo:", err)
		os.Exit(1)
	}
}

// run plays the story, then copies the monitor's database to the file record if that is not empty,
// and serves the page if page is set.
func run(ctx context.Context, scr *screen, page bool, listen, record string) (err error) {
	e, err := openEmbedded(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if !page {
		return e.playAndRecord(ctx, scr, record)
	}
	ln, err := listenLocal(ctx, listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	if err := e.playAndRecord(ctx, scr, record); err != nil {
		return err
	}
	return e.serve(ctx, scr, ln)
}

func (e *embedded) playAndRecord(ctx context.Context, scr *screen, record string) error {
	if err := e.play(ctx, scr); err != nil || record == "" {
		return err
	}
	return store.Backup(ctx, e.monitorDB(), record)
}
