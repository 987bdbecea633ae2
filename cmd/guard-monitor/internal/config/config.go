// Package config reads the settings of guard-monitor.
//
//	cfg, rest, err := config.Load(config.Source{Args: os.Args[1:], Getenv: os.Getenv})
//
// The struct Config is the list of all settings: its tags hold the name in the
// YAML file, the default, the bounds and the allowed values. A few settings can
// also be given by a flag or an environment variable. The file weighs least,
// then the environment, then flags.
//
// In a value of the file, ${NAME} stands for an environment variable, and
// $${NAME} for the text ${NAME}. A secret can be read from a file: add _file to
// its name. A setting that does not exist is refused. An error names the place
// and the setting, and never a secret.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

// ErrInvalid is matched by all errors about settings.
var ErrInvalid = errors.New("invalid settings")

// Config is all settings, complete and checked.
//
// The tag default is the value of a setting that is not given. range holds its
// bounds, oneof its allowed values, and check names one of the checks. A setting with
// required must be given.
type Config struct {
	AMQPURL     Secret `yaml:"amqp_url"`
	DB          string `yaml:"db" default:"guard-monitor.db"`
	Listen      string `yaml:"listen" default:"127.0.0.1:9440" check:"listen"`
	ExternalURL string `yaml:"external_url" check:"url"`
	DocsURL     string `yaml:"docs_url" default:"https://github.com/belaygo/belay/blob/main" check:"url"`
	TimeZone    string `yaml:"time_zone" default:"UTC" check:"zone"`

	Web       Web        `yaml:"web"`
	Log       Log        `yaml:"log"`
	Retention Retention  `yaml:"retention"`
	Incidents Incidents  `yaml:"incidents"`
	Ingest    []Ingest   `yaml:"ingest"`
	Senders   []Sender   `yaml:"senders"`
	Redis     []Redis    `yaml:"redis"`
	Receivers []Receiver `yaml:"receivers"`
}

// Web says who may read the pages, and what may be changed.
type Web struct {
	UsersFile    string `yaml:"users_file"` // lines name:hash, as htpasswd -B writes them
	MetricsToken Secret `yaml:"metrics_token"`
	TLSCertFile  string `yaml:"tls_cert_file"`
	TLSKeyFile   string `yaml:"tls_key_file"`
	Writes       bool   `yaml:"writes" default:"false"`
	// AllowPlainHTTP allows passwords and tokens over http outside of this host.
	AllowPlainHTTP bool `yaml:"allow_plain_http" default:"false"`
	// TrustedProxies name the address of a client in X-Forwarded-For.
	TrustedProxies []string `yaml:"trusted_proxies" check:"networks"`
	// AllowAnybody allows an address that is not loopback without authentication.
	AllowAnybody bool `yaml:"allow_anybody" default:"false"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `yaml:"level" default:"info" oneof:"debug,info,warn,error"`
	Format string `yaml:"format" default:"text" oneof:"text,json"`
}

// Retention is how long, and how much, is kept.
type Retention struct {
	Events    time.Duration `yaml:"events" default:"30d" range:"1h to 3650d"`
	Incidents time.Duration `yaml:"incidents" default:"365d" range:"1h to 3650d"`
	MaxEvents int64         `yaml:"max_events" default:"1000000" range:"1000 to 1000000000"`
	MaxBytes  int64         `yaml:"max_bytes" default:"1GiB" range:"16MiB to 1024TiB"`
}

// Incidents is when an incident begins and ends, and when guard-monitor reports that it sees none.
type Incidents struct {
	Quiet       time.Duration `yaml:"quiet" default:"10m" range:"1s to 7d"`
	SilentAfter time.Duration `yaml:"silent_after" default:"30s" range:"1s to 1d"`
	BlindAfter  time.Duration `yaml:"blind_after" default:"1m" range:"1s to 1h"`
}

// Ingest is who may post events over HTTP.
type Ingest struct {
	Name     string   `yaml:"name" required:"true" check:"name"`
	Token    Secret   `yaml:"token" required:"true"`
	Services []string `yaml:"services" required:"true" blanks:"true"` // or *; a name may hold blanks

	EventsPerSecond int64 `yaml:"events_per_second" default:"200" range:"1 to 100000"`
	Burst           int64 `yaml:"burst" default:"2000" range:"1 to 1000000"`
}

// Sender is somebody who may speak for some services.
type Sender struct {
	Name     string   `yaml:"name" required:"true"`
	Services []string `yaml:"services" required:"true" blanks:"true"` // or *; a name may hold blanks
}

// Redis is a watched Redis.
type Redis struct {
	Name           string   `yaml:"name" required:"true" check:"name"`
	Nodes          []string `yaml:"nodes" required:"true" check:"nodes"`
	SentinelMaster string   `yaml:"sentinel_master"`
	TLS            bool     `yaml:"tls" default:"false"`
	TLSCAFile      string   `yaml:"tls_ca_file"`
	TLSCertFile    string   `yaml:"tls_cert_file"`
	TLSKeyFile     string   `yaml:"tls_key_file"`

	Username         string `yaml:"username"`
	Password         Secret `yaml:"password"`
	SentinelUsername string `yaml:"sentinel_username"`
	SentinelPassword Secret `yaml:"sentinel_password"`
}

// Receiver is a place that notices of incidents are sent to.
type Receiver struct {
	Name     string        `yaml:"name" required:"true" check:"name"`
	Type     receiver.Kind `yaml:"type" required:"true" oneof:"webhook,alertmanager,slack,dingtalk,feishu,wecom"`
	URL      Secret        `yaml:"url" required:"true"`
	Secret   Secret        `yaml:"secret"`
	Token    Secret        `yaml:"token"`
	Mentions []string      `yaml:"mentions"`

	Services      []string      `yaml:"services" blanks:"true"` // or *; empty = all. A name may hold blanks
	Severities    []string      `yaml:"severities" oneof:"critical,warning"`
	EscalateAfter time.Duration `yaml:"escalate_after" default:"0s" range:"0s to 7d"` // 0 = no wait for an acknowledgement
	Incidents     bool          `yaml:"incidents" default:"true"`

	GroupBy        []string      `yaml:"group_by" default:"service,cause" oneof:"service,cause,cluster,shard,severity"`
	GroupWait      time.Duration `yaml:"group_wait" default:"5s" range:"0s to 1h"`
	GroupInterval  time.Duration `yaml:"group_interval" default:"5m" range:"0s to 1d"`
	RepeatInterval time.Duration `yaml:"repeat_interval" default:"4h" range:"1m to 30d"`
	SendResolved   bool          `yaml:"send_resolved" default:"true"`
	RateLimit      int64         `yaml:"rate_limit" default:"18" range:"0 to 100000"` // messages a minute; 0 = no limit

	WatchdogInterval time.Duration `yaml:"watchdog_interval" default:"0s" range:"0s to 7d"` // 0 = none
}

// Config returns what package receiver needs to send to the receiver. Times in
// messages are of the location.
func (r *Receiver) Config(location *time.Location) receiver.Config {
	return receiver.Config{
		Name: r.Name, Kind: r.Type, URL: string(r.URL), Secret: string(r.Secret), Token: string(r.Token),
		Mentions: r.Mentions, Location: location,
	}
}

// Gets reports whether the receiver gets the incidents of a severity of all services, at once.
func (r *Receiver) Gets(severity string) bool {
	services := len(r.Services) == 0 || slices.Contains(r.Services, "*")
	severities := len(r.Severities) == 0 || slices.Contains(r.Severities, severity)
	return r.Incidents && services && severities && r.EscalateAfter == 0
}

// Admit returns why a sender, "" for an unknown one, may not speak for a service.
// Without Senders everybody may speak for all.
func (c *Config) Admit(sender, service string) error {
	bound := func(s Sender) bool {
		return s.Name == sender && (slices.Contains(s.Services, service) || slices.Contains(s.Services, "*"))
	}
	switch {
	case len(c.Senders) == 0 || slices.ContainsFunc(c.Senders, bound):
		return nil
	case sender == "":
		return fmt.Errorf("nobody vouches for this message of the service %.80q, as the setting senders demands", service)
	}
	return fmt.Errorf("the sender %.80q may not speak for the service %.80q: see the setting senders", sender, service)
}

// Location is the location of TimeZone.
func (c *Config) Location() *time.Location {
	location, err := time.LoadLocation(c.TimeZone)
	if err != nil { // it was there when the settings were read
		return time.UTC
	}
	return location
}

// Networks are the TrustedProxies.
func (w *Web) Networks() (all []netip.Prefix) {
	for _, text := range w.TrustedProxies {
		if p, err := parseNetwork(text); err == nil { // as when the settings were read
			all = append(all, p)
		}
	}
	return all
}

// Loopback reports whether only this host can reach the address to listen on.
func (c *Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	ip, noIP := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || noIP == nil && ip.IsLoopback())
}

// Error is one thing that is wrong with the settings. It matches ErrInvalid.
type Error struct{ error }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.error }

// Is reports true for ErrInvalid.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Errorf returns an Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }
