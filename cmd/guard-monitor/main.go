// Command guard-monitor takes the events of lock failures from RabbitMQ,
// stores them, prints one alert line for each and shows them on a web page.
// Run it with -h for its settings and exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(realMain()) }

func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "guard-monitor:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}
