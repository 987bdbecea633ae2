package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/internal/ingest"
	"github.com/belaygo/belay/internal/rabbit"
)

// Source is where settings come from.
type Source struct {
	Args   []string
	Getenv func(string) string
	Flags  func(*flag.FlagSet) // adds the flags of a command; may be nil
	Needs  Need
}

// Need is what the settings must have for a command.
type Need int

// The commands take events, ask the broker, or work beside the monitor.
const (
	Events Need = iota // amqp_url or ingest
	Broker             // amqp_url
	Nothing
)

// outside are the settings that can be given outside the file. The empty name is
// that of the file itself.
var outside = []struct{ name, flag, env, usage string }{
	{"", "config FILE", "BELAY_MONITOR_CONFIG", "YAML file with settings: deploy/guard-monitor.yaml has all of them."},
	{"amqp_url", "amqp-url URL", "BELAY_AMQP_URL", "RabbitMQ. Others on this host can read a command line: prefer the variable or the file."},
	{"db", "db FILE", "BELAY_MONITOR_DB", "SQLite file to keep events in; default guard-monitor.db."},
	{"listen", "listen ADDR", "", "Address for the pages, /healthz and /metrics; default 127.0.0.1:9440. Port 0 takes a free one."},
	{"redis", "redis-nodes HOST:PORT,...", "", "One Redis to watch, called redis, in place of those in the file."},
}

// Usage writes what the flags and variables mean.
func Usage(w io.Writer) {
	for _, o := range outside {
		fmt.Fprintf(w, "  -%s\n        %s\n", o.flag, o.usage)
		if o.env != "" {
			fmt.Fprintf(w, "        Environment: %s.\n", o.env)
		}
	}
}

// given is the text of a setting outside the file, and where it stands.
type given struct{ text, place string }

// Load reads the settings from the file, the environment and the arguments. It
// returns the arguments behind the flags. All that is wrong is reported, in an
// error that matches ErrInvalid; flag.ErrHelp is returned as it is.
func Load(from Source) (*Config, []string, error) {
	all, rest, err := from.outside()
	if err != nil {
		return nil, nil, err
	}
	c := new(Config)
	setDefaults(reflect.ValueOf(c).Elem())
	d := &decoder{file: all[""].text, getenv: from.Getenv, places: make(map[string]string)}
	if d.file != "" {
		n, err := readFile(d.file)
		if err != nil {
			return nil, nil, err
		}
		d.section(n, "", reflect.ValueOf(c).Elem())
	}
	for _, o := range outside {
		if g, ok := all[o.name]; ok && o.name != "" {
			d.override(c, o.name, g)
		}
	}
	d.check(c, from.Needs)
	return c, rest, errors.Join(d.problems...)
}

// outside returns what the environment and the flags say, and the arguments
// behind the flags. No flag has a default here: flag would print one, and it might
// be a password.
func (from Source) outside() (all map[string]given, rest []string, err error) {
	all = make(map[string]given)
	fs := flag.NewFlagSet("guard-monitor", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	for _, o := range outside {
		if text := from.Getenv(o.env); o.env != "" && text != "" {
			all[o.name] = given{text, "environment " + o.env}
		}
		name, _, _ := strings.Cut(o.flag, " ")
		fs.Func(name, "", func(text string) error {
			if text == "" {
				return errors.New("has no value")
			}
			all[o.name] = given{text, "flag -" + name}
			return nil
		})
	}
	if from.Flags != nil {
		from.Flags(fs)
	}
	err = fs.Parse(from.Args)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case strings.Contains(err.Error(), "@"):
		// The error quotes the argument, which may be a URL with a password.
		err = Errorf("wrong flag: not shown, as it may hold a password")
	default:
		err = Errorf("%w; -h lists the flags, and other settings belong in the file", err)
	}
	return all, fs.Args(), err
}

// override takes what is given outside the file instead of what the file says.
func (d *decoder) override(c *Config, name string, g given) {
	owner, setting := reflect.ValueOf(c).Elem(), name
	if name == "redis" {
		c.Redis = []Redis{{Name: "redis"}}
		owner, setting = reflect.ValueOf(&c.Redis[0]).Elem(), "nodes"
	}
	field, _, _ := fieldOf(owner.Type(), setting)
	d.places[name] = g.place
	if err := set(owner.FieldByIndex(field.Index), field.Tag, g.text); err != nil {
		d.fail(g.place, name, err)
	}
}

// check finds what is wrong with settings that are right by themselves.
func (d *decoder) check(c *Config, needs Need) {
	d.checkSources(c, needs)
	if w := c.Web; !c.Loopback() && w.UsersFile == "" && w.MetricsToken == "" && !w.AllowAnybody {
		d.fail(d.places["listen"], "listen", errors.New("not a loopback address; without authentication (web.users_file, web.metrics_token) "+
			"guard-monitor listens on 127.0.0.1, [::1] or localhost only, unless web.allow_anybody says otherwise"))
	}
	secrets := c.Web.UsersFile+string(c.Web.MetricsToken) != "" || len(c.Ingest) > 0
	if w := c.Web; !c.Loopback() && secrets && w.TLSCertFile == "" && !w.AllowPlainHTTP {
		d.fail(d.places["listen"], "listen", errors.New("passwords and tokens would cross the network in the clear: set web.tls_cert_file and "+
			"web.tls_key_file; or listen on 127.0.0.1 behind a proxy that speaks TLS; or, if the network between that proxy and here is "+
			"trusted, web.allow_plain_http"))
	}
	if (c.Web.TLSCertFile == "") != (c.Web.TLSKeyFile == "") {
		d.fail("", "web.tls_cert_file", errors.New("the certificate and its key, web.tls_key_file, come together"))
	}
	c.ExternalURL, c.DocsURL = strings.TrimRight(c.ExternalURL, "/"), strings.TrimRight(c.DocsURL, "/")+"/"
	for i, r := range c.Redis {
		if name := fmt.Sprintf("redis[%d]", i); !r.TLS && r.TLSCAFile+r.TLSCertFile+r.TLSKeyFile != "" {
			d.fail(d.places[name], name, errors.New("tls_ca_file, tls_cert_file and tls_key_file need tls: true"))
		}
	}
	for i := range c.Receivers {
		d.checkReceiver(&c.Receivers[i], fmt.Sprintf("receivers[%d]", i))
	}
	late := slices.ContainsFunc(c.Receivers, func(r Receiver) bool { return r.EscalateAfter > 0 })
	if late && !slices.ContainsFunc(c.Receivers, func(r Receiver) bool { return r.Incidents && r.EscalateAfter == 0 }) {
		d.fail(d.places["receivers"], "receivers", errors.New("all wait for escalate_after: one must get incidents at once"))
	}
}

// checkSources finds what is wrong with where events come from.
func (d *decoder) checkSources(c *Config, needs Need) {
	place, ok := d.places["amqp_url"]
	if _, err := rabbit.ParseURL(string(c.AMQPURL)); err != nil && c.AMQPURL != "" {
		d.fail(place, "amqp_url", errors.New(strings.TrimPrefix(err.Error(), "rabbitmq: ")))
	}
	switch {
	case ok || needs == Nothing || needs == Events && len(c.Ingest) > 0:
	case needs == Broker:
		d.fail("", "amqp_url", errors.New("is not set (flag -amqp-url, environment BELAY_AMQP_URL)"))
	default:
		d.fail("", "amqp_url", errors.New("is not set (flag -amqp-url, environment BELAY_AMQP_URL), and neither is ingest: "+
			"events come from RabbitMQ, or are posted with a token of ingest"))
	}
	tokens := map[Secret]string{c.Web.MetricsToken: "web.metrics_token"}
	for i, e := range c.Ingest {
		name := fmt.Sprintf("ingest[%d]", i)
		wrong := ingest.CheckToken(string(e.Token))
		switch other := tokens[e.Token]; {
		case e.Token == "":
		case wrong != nil:
			d.fail(d.places[name], name, fmt.Errorf("the token %w", wrong))
		case other != "":
			d.fail(d.places[name], name, fmt.Errorf("the token is that of %s: who has it would open both", other))
		}
		tokens[e.Token] = name
	}
}

func (d *decoder) checkReceiver(r *Receiver, name string) {
	if cfg := r.Config(nil); r.Name != "" && r.Type != "" && r.URL != "" {
		if err := cfg.Validate(); err != nil {
			d.fail(d.places[name], name, err)
		}
	}
	d.checkWatchdog(r, join(name, "watchdog_interval"))
	if !r.Incidents && r.WatchdogInterval == 0 {
		d.fail(d.places[name], name, errors.New("gets nothing: incidents is false, and watchdog_interval is 0s"))
	}
	if r.Type != receiver.Alertmanager {
		return
	}
	// Alertmanager groups and repeats by itself, and needs every alert all the time.
	for _, own := range []string{"group_by", "group_wait", "group_interval", "repeat_interval", "rate_limit", "send_resolved", "escalate_after"} {
		if place, ok := d.places[join(name, own)]; ok {
			d.fail(place, join(name, own), errors.New("is up to Alertmanager"))
		}
	}
	r.GroupBy, r.GroupWait, r.GroupInterval, r.RateLimit = nil, 0, 0, 0
	r.RepeatInterval = receiver.AlertmanagerRepeat
}

// The bounds of the watchdog: robots count the messages of a minute, and Alertmanager
// forgets an alert that is not repeated.
const (
	minWatchdog             = time.Minute
	maxAlertmanagerWatchdog = 2 * receiver.AlertmanagerRepeat
)

func (d *decoder) checkWatchdog(r *Receiver, name string) {
	switch w := r.WatchdogInterval; {
	case w == 0:
	case w < minWatchdog:
		d.fail(d.places[name], name, fmt.Errorf("want 0s for none, or at least %v", minWatchdog))
	case r.Type == receiver.Alertmanager && w > maxAlertmanagerWatchdog:
		d.fail(d.places[name], name, fmt.Errorf("want at most %v: Alertmanager takes an alert for resolved that is not repeated", maxAlertmanagerWatchdog))
	}
}

const (
	maxFile   = 1 << 20 // bytes
	maxSecret = 8 << 10 // bytes
)

// readAll returns the bytes of a file, which can be a pipe.
func readAll(path string, most int64) ([]byte, error) {
	in, err := os.Open(path) //nolint:gosec // the administrator names it
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return raw, err
}

// readSecret returns the text of a file without the line end behind it.
func readSecret(path string) (string, error) {
	raw, err := readAll(path, maxSecret)
	secret := strings.TrimRight(string(raw), "\r\n")
	if err == nil && secret == "" {
		err = fmt.Errorf("%s is empty", path)
	}
	return secret, err
}

// readFile returns the root of the only document of a YAML file.
func readFile(path string) (*yaml.Node, error) {
	raw, err := readAll(path, maxFile)
	if err != nil {
		return nil, Errorf("config: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, second yaml.Node
	if err = dec.Decode(&doc); err == nil {
		err = dec.Decode(&second)
	}
	switch {
	case err == nil:
		return nil, Errorf("%s:%d: only one document is read", path, second.Line)
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(path, err)
	case len(doc.Content) == 0 || doc.Content[0].Tag == "!!null": // only comments
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	return doc.Content[0], nil
}

var (
	yamlLine  = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	yamlQuote = regexp.MustCompile(`'.*'|".*"` + "|`.*`")
)

// syntaxError leaves out what the parser quotes: a password that begins with '*'
// is an alias to it.
func syntaxError(path string, err error) error {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		path += ":" + m[1]
	}
	return Errorf("%s: %s", path, yamlQuote.ReplaceAllString(yamlLine.ReplaceAllString(err.Error(), ""), "'...'"))
}
