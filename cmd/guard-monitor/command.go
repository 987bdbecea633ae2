package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
)

// errUsage is matched by errors about settings and arguments.
var errUsage = config.ErrInvalid

func usagef(format string, args ...any) error { return config.Errorf(format, args...) }

// call is one run of the program.
type call struct {
	args           []string // behind the command and the flags
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	cfg            *config.Config

	limit  int  // -n
	follow bool // -follow
}

// names are the arguments, each once.
func (c *call) names() []string { return slices.Compact(slices.Sorted(slices.Values(c.args))) }

// logger writes to standard error as the settings say.
func (c *call) logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.cfg.Log.Level)) // it is one of the allowed values
	options := &slog.HandlerOptions{Level: level}
	if c.cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(c.stderr, options))
	}
	return slog.New(slog.NewTextHandler(c.stderr, options))
}

type command struct {
	name, args string
	usage      string
	needs      config.Need
	flags      func(*call, *flag.FlagSet)
	run        func(context.Context, *call) error
}

var commands = []command{
	{name: "serve", usage: "read events, explain them and notify people; the default", run: serve},
	{name: "tail", usage: "show events and incidents of the database as they come; -n 10 lines of before, -follow=false to end after them", needs: config.Nothing, flags: tailFlags, run: tail},
	{name: "topology", usage: "declare exchanges and queues of RabbitMQ, and exit", needs: config.Broker, run: topology},
	{name: "dlq list", usage: "list the dead letters: messages that serve could not take; -n 100 at most", needs: config.Broker, flags: limitFlag(100), run: listDead},
	{name: "dlq show", args: "ID...", usage: "show dead letters whole, as text", needs: config.Broker, run: showDead},
	{name: "dlq replay", args: "ID...|all", usage: "publish dead letters again and take them out of their queue; all takes those that are events; -n 1000 at most", needs: config.Broker, flags: limitFlag(deadletter.MaxLetters), run: replayDead},
	{name: "forget", args: "SERVICE...", usage: "forget services that are out of use, so that their silence is no incident; in a name, * stands for any text", needs: config.Nothing, run: forget},
	{name: "backup", args: "FILE", usage: "copy the database to a new file, also while serve runs", needs: config.Nothing, run: backup},
	{name: "export", args: "DIR", usage: "write the pages as files to a new folder, for a browser or any web server, also while serve runs", needs: config.Nothing, run: export},
	{name: "request-key", args: "OPERATION [SCOPE...]", usage: "print the key of each request whose id is a line of the standard input, such as an Idempotency-Key; without a SCOPE it is that of once.Anyone", needs: config.Nothing, run: requestKeys},
	{name: "test-notify", args: "[RECEIVER...]", usage: "send a test message to all receivers, or to those named", needs: config.Nothing, run: testNotify},
	{name: "doctor", usage: "look for mistakes around it: its file, RabbitMQ, the watched Redis, its certificate; change nothing", run: diagnose},
	{name: "check-config", usage: "read the settings, show them without secrets, and exit", run: checkConfig},
	{name: "version", usage: "print the version and exit", needs: config.Nothing, run: func(_ context.Context, c *call) error { return printVersion(c.stdout) }},
}

// run runs the command that the arguments name. serve returns nil after ctx ended and
// all is stopped.
func run(ctx context.Context, c call) error {
	cmd, args, err := choose(c.args)
	if err != nil {
		return err
	}
	var version bool
	needs := cmd.needs
	if asksVersion(args) {
		needs = config.Nothing
	}
	cfg, rest, err := config.Load(config.Source{
		Args: args, Getenv: c.getenv, Needs: needs,
		Flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&version, "version", false, "")
			if cmd.flags != nil {
				cmd.flags(&c, fs)
			}
		},
	})
	switch {
	case errors.Is(err, flag.ErrHelp):
		return printUsage(c.stdout)
	case err != nil:
		return err
	case version:
		return printVersion(c.stdout)
	case len(rest) > 0 && cmd.args == "":
		// Not shown: it may be a URL with a password.
		return usagef("%d arguments behind the flags: %s takes none", len(rest), cmd.name)
	case len(rest) == 0 && cmd.args != "" && cmd.args[0] != '[':
		return usagef("%s needs arguments: %s", cmd.name, cmd.args)
	}
	c.cfg, c.args = cfg, rest
	return cmd.run(ctx, &c)
}

func asksVersion(args []string) bool {
	return len(args) == 1 && (args[0] == "-version" || args[0] == "--version")
}

// choose returns the command and what is behind its name.
func choose(args []string) (*command, []string, error) {
	words := 0
	for words < len(args) && words < 2 && !strings.HasPrefix(args[words], "-") {
		words++
	}
	if words == 0 {
		return &commands[0], args, nil
	}
	for n := words; n > 0; n-- {
		for i := range commands {
			if commands[i].name == strings.Join(args[:n], " ") {
				return &commands[i], args[n:], nil
			}
		}
	}
	if args[0] == "help" {
		return &commands[0], []string{"-h"}, nil
	}
	var known []string
	for i := range commands {
		known = append(known, commands[i].name)
	}
	// Not shown: it may be a URL with a password.
	return nil, nil, usagef("unknown command or argument; commands are %s", strings.Join(known, ", "))
}

func (c *call) checkLimit(least, most int) error {
	if c.limit < least || c.limit > most {
		return usagef("-n %d is outside %d to %d", c.limit, least, most)
	}
	return nil
}

func limitFlag(def int) func(*call, *flag.FlagSet) {
	return func(c *call, fs *flag.FlagSet) { fs.IntVar(&c.limit, "n", def, "") }
}

func printUsage(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Usage: guard-monitor [COMMAND] [FLAGS] [ARGUMENTS]\n\nCommands:\n\n")
	for i := range commands {
		cmd := &commands[i]
		fmt.Fprintf(&b, "  %s\n        %s\n", strings.TrimSpace(cmd.name+" "+cmd.args), cmd.usage)
	}
	b.WriteString("\nFlags, which outweigh the environment, which outweighs the file:\n\n")
	config.Usage(&b)
	b.WriteString(`  -version
        Print the version and exit.
  -h    Print this and exit.

Logs go to standard error. A broker that does not answer is asked again until
it does. SIGINT and SIGTERM end serve and tail; a second one ends them at once.

Exit codes:
  0  done, or stopped by SIGINT or SIGTERM
  1  failed: while starting or running, or one of several parts of the work
  2  wrong setting, flag, environment variable or argument
`)
	_, err := io.WriteString(w, b.String())
	return err
}
