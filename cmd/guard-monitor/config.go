package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// errUsage is matched by errors about settings.
var errUsage = errors.New("wrong usage")

type usageError struct{ error }

func (usageError) Is(target error) bool { return target == errUsage }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type config struct {
	amqpURL string
	db      string
	listen  string

	help    bool
	version bool
}

// A setting is a flag that falls back to an environment variable.
type setting struct {
	flag, value, env, def string
	usage                 []string
	into                  func(*config) *string
}

var settings = []setting{
	{
		flag: "amqp-url", value: "URL", env: "BELAY_AMQP_URL",
		usage: []string{
			"RabbitMQ to take events from, as amqp://user:password@host:port/vhost; required.",
			"Other users of this host can read a command line: prefer the environment.",
		},
		into: func(c *config) *string { return &c.amqpURL },
	},
	{
		flag: "db", value: "FILE", env: "BELAY_MONITOR_DB", def: "guard-monitor.db",
		usage: []string{"SQLite file to keep events in; created if it is not there. Not on a network file system."},
		into:  func(c *config) *string { return &c.db },
	},
	{
		flag: "listen", value: "ADDR", env: "BELAY_MONITOR_LISTEN", def: "127.0.0.1:9440",
		usage: []string{
			"Loopback address for the page (/), /healthz and /metrics. Port 0 takes a free one;",
			"the address is printed. There is no authentication, so no other address is accepted.",
		},
		into: func(c *config) *string { return &c.listen },
	},
}

// parse reads the settings from args, then from the environment. Defaults come
// last and not from flag, which would print a password from the environment.
func parse(args []string, getenv func(string) string) (config, error) {
	var c config
	fs := flag.NewFlagSet("guard-monitor", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&c.version, "version", false, "")
	for _, s := range settings {
		fs.StringVar(s.into(&c), s.flag, "", "")
	}
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return config{help: true}, nil
	}
	if err != nil && strings.Contains(err.Error(), "@") {
		// The error quotes the argument, which may be a URL with a password.
		return config{}, usagef("wrong flag: not shown, as it may hold a password")
	}
	if err != nil {
		return config{}, usageError{err}
	}
	if fs.NArg() > 0 {
		// Not shown: it may be a URL with a password.
		return config{}, usagef("%d arguments after the flags: guard-monitor takes none", fs.NArg())
	}
	set := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { set[f.Name] = true })
	for _, s := range settings {
		if v := s.into(&c); !set[s.flag] {
			*v = s.def
			if env := getenv(s.env); env != "" {
				*v = env
			}
		}
	}
	return c, nil
}

func (c config) validate() error {
	for _, s := range settings {
		if *s.into(&c) == "" {
			return usagef("-%s (or %s) is not set", s.flag, s.env)
		}
	}
	return checkListen(c.listen)
}

func checkListen(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef("-listen %q: want host:port, such as 127.0.0.1:9440", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return usagef("-listen %q: the port is not a number from 0 to 65535", addr)
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return usagef("-listen %q: not a loopback address; without authentication guard-monitor listens on 127.0.0.1, [::1] or localhost only", addr)
	}
	return nil
}

func printUsage(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`Usage: guard-monitor -amqp-url URL [-db FILE] [-listen ADDR]

Takes the events of lock failures from RabbitMQ, stores each once, prints one
alert line for it on standard output and shows the last ones on a web page.
Logs go to standard error. A broker that does not answer is asked again until
it does.

`)
	for _, s := range settings {
		fmt.Fprintf(&b, "  -%s %s\n", s.flag, s.value)
		for _, line := range s.usage {
			fmt.Fprintf(&b, "        %s\n", line)
		}
		fmt.Fprintf(&b, "        Environment: %s. Default: %s.\n", s.env, defaultWords(s.def))
	}
	b.WriteString(`  -version
        Print the version and exit.
  -h    Print this and exit.

A flag outweighs the environment.

Exit codes:
  0  stopped by SIGINT or SIGTERM, or only -h or -version was asked for
  1  failed while starting or running
  2  wrong flag, environment variable or argument
`)
	_, err := io.WriteString(w, b.String())
	return err
}

func defaultWords(def string) string {
	if def == "" {
		return "none"
	}
	return def
}
