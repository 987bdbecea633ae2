// Package config reads the settings of guard-monitor.
//
// Every setting is one entry of a table (options.go): its name in the file,
// what it takes, its default and what it means. Flag, environment variable,
// help and the sample file all follow from that entry, so that none can be
// forgotten. The file weighs least, then the environment, then flags.
//
// A setting that nobody knows and a value that cannot be right are errors that
// say where they stand: file and line, variable or flag. Values that hold a
// password are never quoted.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

// ErrInvalid is matched by all errors about settings.
var ErrInvalid = errors.New("invalid settings")

// Config is all settings, complete and checked.
type Config struct {
	File string // the file that was read; empty if none

	AMQPURL     string
	DB          string
	Listen      string
	Web         Web
	ExternalURL string // without a slash at the end; empty if not set
	DocsURL     string // ends with a slash
	Location    *time.Location
	LogLevel    slog.Level
	LogJSON     bool

	Retention Retention
	Incidents Incidents
	Redis     []Redis
	Receivers []Receiver

	WatchInterval time.Duration

	shown [][3]string // see Show
}

// Web says who may see the pages, and what may be done there.
type Web struct {
	UsersFile string // of lines name:hash, as htpasswd -B writes them; empty = none
	Token     string // that is asked for as a bearer; empty = none
	CertFile  string // of TLS; empty = none
	KeyFile   string
	Writes    bool
	Hosts     []string
	MaxLive   int
	// Anybody allows an address that is not loopback without authentication.
	Anybody bool
}

// Loopback reports whether only this host can reach the page.
func (c *Config) Loopback() bool { return loopback(c.Listen) }

// Retention says how long things are kept.
type Retention struct {
	Events    time.Duration
	Incidents time.Duration
	MaxEvents int64
	MaxBytes  int64
}

// Incidents says when an incident ends.
type Incidents struct {
	Quiet       time.Duration
	SilentAfter time.Duration
}

// Redis is a watched Redis.
type Redis struct {
	Name           string
	Nodes          []string
	SentinelMaster string
	TLS            bool

	Username, Password                 string
	SentinelUsername, SentinelPassword string
}

// Receiver is somebody who is told.
type Receiver struct {
	receiver.Config
	GroupBy        []string
	GroupWait      time.Duration
	GroupInterval  time.Duration
	RepeatInterval time.Duration
	Resolved       bool // whether to tell of the end
	RatePerMinute  int  // 0 = no limit
	MaxAlerts      int  // in one message; 0 = no limit
}

// Error is one thing that is wrong with the settings.
type Error struct {
	Where string // "file:line", "environment BELAY_..." or "flag -..."
	Name  string // of the setting; empty if it is about more
	Err   error
}

func (e *Error) Error() string {
	s := e.Err.Error()
	if e.Name != "" {
		s = e.Name + ": " + s
	}
	if e.Where != "" {
		s = e.Where + ": " + s
	}
	return s
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Is reports true for ErrInvalid.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

func wrong(where, name, format string, args ...any) error {
	return &Error{where, name, fmt.Errorf(format, args...)}
}
