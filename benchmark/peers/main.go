// Command peers measures Belay side by side with other libraries, all on the same servers, in turn,
// in one run.
//
//	peers lock     cycles of acquire and release, in several workloads
//	peers engines  cycles of acquire and release on every lock engine
//	peers messages how fast messages leave a table for a queue
//
// It takes the servers' addresses from the variables that scripts/stack env prints.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: peers lock|engines|messages [flags]")
	}
	if args[0] == "messages" {
		return benchMessages(ctx, args[1:])
	}
	addrs, err := addresses()
	if err != nil {
		return err
	}
	switch args[0] {
	case "lock":
		return benchLock(ctx, addrs, args[1:])
	case "engines":
		return benchEngines(ctx, addrs, args[1:])
	case "worker":
		return work(addrs, args[1:])
	}
	return fmt.Errorf("unknown command %q (lock, engines, messages)", args[0])
}

func addresses() ([]string, error) {
	list := os.Getenv("BELAY_REDIS_ADDRS")
	if list == "" {
		return nil, errors.New(`BELAY_REDIS_ADDRS is empty; set it with: eval "$(scripts/stack env)"`)
	}
	return strings.Split(list, ","), nil
}
