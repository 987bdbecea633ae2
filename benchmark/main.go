// Benchmark repeats the experiment of the paper on real servers, and shows where
// Belay stands.
//
//	go -C benchmark run . seed        fill the tables, ten million rows each
//	go -C benchmark run . table1      the paper's table, every figure measured anew
//	go -C benchmark run . guard       guard.Do beside what does the same without it
//	go -C benchmark run . cost        what one operation costs, and how that grows with the table
//	go -C benchmark run . report      Markdown and HTML from the JSON of a run
//	go -C benchmark run . serve       one instance of the service, by itself
//
// How it works:
//
//   - seed fills a database of its own per size, in chunks that are one
//     transaction each with the note of how far it is.
//   - serve is one process with one endpoint per method; what the operation does
//     to the rows is the same for all.
//   - A stage is everything that a run needs: a Redis Cluster and a RabbitMQ
//     virtual host of its own, guard-monitor, the instances, nginx. It goes when
//     the run ends, however that is.
//   - table1 plans each round in advance, lets a crowd send it at once, kills a
//     master while one request stands still with its lock, and then counts in
//     the database and in the monitor's store what has really happened.
//   - The crowd is a closed loop with a connection per user; JMeter can take its
//     place with the same plan.
//   - Rounds begin with another method each time; medians are compared within
//     the run, as absolute times of another machine mean nothing.
//   - Results are JSON from the first round on; reports are made from it alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/belaygo/belay/benchmark/internal/versus"
)

// A command is one of the program's.
type command struct {
	name, does string
	run        func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"seed", "fill the tables", runSeed},
		{"table1", "repeat the experiment of the paper", runTable1},
		{"guard", "put guard.Do beside what does the same without it", runGuard},
		{"cost", "measure what one operation costs the servers", runCost},
		{"report", "make Markdown and HTML from the JSON of a run", runReport},
		{"serve", "run one instance of the service", runServe},
		{versus.WorkerCommand, "be a process of guard, which starts it", runWorker},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := execute(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		if errors.Is(err, syscall.ECONNREFUSED) {
			fmt.Fprintln(os.Stderr, `is the server up? see "scripts/stack status"`)
		}
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usagef("name a command:\n%s", usage())
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:])
		}
	}
	if strings.TrimLeft(args[0], "-") == "help" || args[0] == "-h" {
		fmt.Print(usage())
		return nil
	}
	return usagef("no command is called %q:\n%s", args[0], usage())
}

func usage() string {
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "  go -C benchmark run . %-12s %s (-h for its flags)\n", c.name, c.does)
	}
	return b.String()
}
