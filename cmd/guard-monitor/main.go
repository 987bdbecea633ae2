// Command guard-monitor notifies people that locks failed, and why. It takes the
// events from RabbitMQ or over HTTP, stores them, watches Redis, groups both into incidents, and
// shows and sends these. Run it with -h for its commands, settings and exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // time zones also where the system has none

	_ "golang.org/x/crypto/x509roots/fallback" // likewise authorities, as in an image of this program alone
)

func main() { os.Exit(realMain()) }

func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	err := run(ctx, call{args: os.Args[1:], getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	if err == nil {
		return exitOK
	}
	report(os.Stderr, err)
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitFailed
}

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// report writes one line for every error.
func report(w *os.File, err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			report(w, one)
		}
		return
	}
	fmt.Fprintln(w, "guard-monitor:", err)
}
