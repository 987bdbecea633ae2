package config_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
)

// Every error says where the wrong setting stands, and hides secrets.
func TestWrong(t *testing.T) {
	const ok = "amqp_url: " + broker + "\n"
	tests := []struct{ text, want string }{
		{"# nothing\n", "amqp_url: is not set (flag -amqp-url, environment BELAY_AMQP_URL)"},
		{ok + "lisen: 127.0.0.1:1\n", `:2: lisen: unknown setting; there are amqp_url, db, listen, `},
		{ok + "log:\n  colour: red\n", ":3: log.colour: unknown setting; there are level, format"},
		{ok + "log: info\n", ":2: log: want settings"},
		{ok + "log:\n", ":2: log: want settings"},
		{ok + "listen: [a]\n", `:2: listen: want a value`},
		{ok + "listen: {a: b}\n", ":2: listen: want a value"},
		{ok + "listen:\n", ":2: listen: has no value"},
		{ok + "listen: ''\n", ":2: listen: has no value"},
		{ok + "listen: 0.0.0.0:9440\n", ":2: listen: not a loopback address"},
		{ok + "listen: 0.0.0.0:9440\nweb: {users_file: a}\n", ":2: listen: passwords and tokens would cross the network in the clear: set web.tls_cert_file"},
		{ok + "web: {trusted_proxies: [10.0.0.0/33]}\n", ":2: web.trusted_proxies: want an IP address or a network"},
		{ok + "listen: monitor.example.com:9440\n", ":2: listen: want host:port"},
		{ok + "db: a\ndb: b\n", ":3: db: is set already at "},
		{ok + "amqp_url_file: /missing\n", ":2: amqp_url: is set already at "},
		{ok + "db_file: /missing\n", ":2: db_file: unknown setting"},
		{ok + "web:\n  tls_cert_file: a\n", "web.tls_cert_file: the certificate and its key"},
		{ok + "senders: [{name: shop}]\n", ":2: senders[0].services: is required"},
		{ok + "senders: [{services: a}]\n", ":2: senders[0].name: is required"},
		{ok + "senders:\n  - {name: shop, services: a}\n  - {name: shop, services: b}\n", ":4: senders[1]: senders[0] has the name shop already"},
		{ok + "web:\n  writes: yes\n", ":3: web.writes: want true or false"},
		{ok + "retention:\n  events: 1 month\n", `:3: retention.events: want a duration`},
		{ok + "retention:\n  events: 1s\n", ":3: retention.events: want 1h to 3650d"},
		{ok + "retention:\n  max_bytes: 2GB\n", ":3: retention.max_bytes: want a whole number, or a size"},
		{ok + "retention:\n  max_bytes: 9999999TiB\n", ":3: retention.max_bytes: want a whole number, or a size"},
		{ok + "retention:\n  max_events: 1.5\n", ":3: retention.max_events: want a whole number"},
		{ok + "retention:\n  max_events: 2000000000\n", ":3: retention.max_events: want 1000 to 1000000000"},
		{ok + "log:\n  level: loud\n", ":3: log.level: want debug, info, warn, error"},
		{ok + "time_zone: Mars/Olympus\n", ":2: time_zone: want a time zone"},
		{ok + "time_zone: ../../etc/passwd\n", ":2: time_zone: want a time zone"},
		{ok + "external_url: monitor.example.com\n", ":2: external_url: want http"},
		{ok + "external_url: https://u:" + password + "@h/\n", ":2: external_url: want http"},
		{"amqp_url: http://u:" + password + "@h/\n", ":1: amqp_url: url must begin with amqp"},
		{"amqp_url: amqp://${NONE}@h/\n", ":1: amqp_url: the environment variable NONE is not set"},
		{"amqp_url: amqp://${" + password + "\n", ":1: amqp_url: want ${NAME}"},
		{ok + "db: ${a b}\n", ":2: db: want ${NAME}"},
		{ok + "db: ${}\n", ":2: db: want ${NAME}"},
		{ok + "listen: ${PASSWORD}\n", ":2: listen: want host:port"},
		{"amqp_url: *" + password + "\n", "unknown anchor"},
		{"amqp_url: !" + password + "\n", ":1: amqp_url: aliases, anchors and tags"},
		{"amqp_url: &" + password + "\n", ":1: amqp_url: aliases, anchors and tags"},
		{"a: &x [1]\nb: *x\n", ":2: b: unknown setting"},
		{ok + "db: &x a\nlisten: *x\n", ":3: listen: aliases"},
		{ok + "\tdb: a\n", ":2: found a tab character that violates indentation"},
		{ok + "db: 'a\n", ":"},
		{ok + "---\ndb: a\n", ":2: only one document"},
		{"- a\n", ":1: want settings"},
		{"just text\n", ":1: want settings"},
		{ok + "1: 2\n? [a]\n: b\n", ":3: unknown setting"},
		{ok + "? " + password + "@h\n: b\n", ":2: unknown setting"},
		{ok + "redis: 127.0.0.1:1\n", ":2: redis: want a list"},
		{ok + "redis:\n  - nodes: [a:1]\n", ":3: redis[0].name: is required"},
		{ok + "redis:\n  - name: a\n", ":3: redis[0].nodes: is required"},
		{ok + "redis:\n  - name: a\n    nodes: [a]\n", ":4: redis[0].nodes: want host:port"},
		{ok + "redis:\n  - name: a\n    nodes: []\n", ":4: redis[0].nodes: want at least one"},
		{ok + "redis:\n  - name: a b\n    nodes: [a:1]\n", ":3: redis[0].name: want 1 to 64 letters"},
		{ok + "redis:\n  - name: a\n    nodes: [a:1]\n    tls_ca_file: ca.pem\n", ":3: redis[0]: tls_ca_file, tls_cert_file and tls_key_file need tls: true"},
		{ok + "redis:\n  - {name: a, nodes: [a:1]}\n  - {name: a, nodes: [a:1]}\n", ":4: redis[1]: redis[0] has the name a already"},
		{"db: a\n", "amqp_url: is not set (flag -amqp-url, environment BELAY_AMQP_URL), and neither is ingest"},
		{"ingest:\n  - {token: " + password + password + password + "}\n", ":2: ingest[0].name: is required"},
		{"ingest:\n  - {name: a, services: [a]}\n", ":2: ingest[0].token: is required"},
		{"ingest:\n  - {name: a, token: 0123456789abcdef}\n", ":2: ingest[0].services: is required"},
		{"ingest:\n  - {name: a, token: " + password + ", services: [a]}\n", ":2: ingest[0]: the token is shorter than 16 bytes"},
		{"ingest:\n  - {name: a, token: '0123456789 abcdef', services: [a]}\n", ":2: ingest[0]: the token holds a blank"},
		{"ingest:\n  - {name: a, token: '0123456789abcdef ', services: [a]}\n", ":2: ingest[0]: the token holds a blank"},
		{"ingest:\n  - {name: a, token: 0123456789abcdéf, services: [a]}\n", ":2: ingest[0]: the token holds a blank"},
		{"ingest:\n  - {name: a, token: 0123456789abcdef, services: [a]}\n  - {name: b, token: 0123456789abcdef, services: [b]}\n", ":3: ingest[1]: the token is that of ingest[0]"},
		{"ingest:\n  - {name: a, token: 0123456789abcdef, services: [' ']}\n", ":2: ingest[0].services: want at least one"},
		{"web: {metrics_token: 0123456789abcdef}\ningest:\n  - {name: a, token: 0123456789abcdef, services: [a]}\n", ":3: ingest[0]: the token is that of web.metrics_token"},
		{"listen: 10.0.0.1:9440\nweb: {allow_anybody: true}\ningest:\n  - {name: a, token: 0123456789abcdef, services: [a]}\n", ":1: listen: passwords and tokens would cross"},
		{ok + "receivers:\n  - text\n", ":3: receivers[0]: want settings"},
		{ok + "receivers:\n  - {name: a, type: pager, url: http://a/}\n", ":3: receivers[0].type: want webhook, alertmanager, "},
		{ok + "receivers:\n  - {name: a, type: slack}\n", ":3: receivers[0].url: is required"},
		{ok + "receivers:\n  - {name: a, type: slack, url: \"ftp://" + password + "\"}\n", ":3: receivers[0]: url must begin"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, url_fle: x}\n", ":3: receivers[0].url_fle: unknown setting"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, group_by: [key]}\n", ":3: receivers[0].group_by: want service, cause, "},
		{ok + "receivers:\n  - name: a\n    type: alertmanager\n    url: http://a/\n    rate_limit: 1\n", ":6: receivers[0].rate_limit: is up to Alertmanager"},
		{ok + "receivers:\n  - {name: a, type: alertmanager, url: http://a/, escalate_after: 1m}\n", ":3: receivers[0].escalate_after: is up to Alertmanager"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, escalate_after: 1m}\n", ":3: receivers: all wait for escalate_after"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, escalate_after: 1m}\n  - {name: b, type: slack, url: http://b/, incidents: false, watchdog_interval: 1m}\n", ":3: receivers: all wait"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, severities: [info]}\n", ":3: receivers[0].severities: want critical, warning"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, incidents: false}\n", ":3: receivers[0]: gets nothing"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, watchdog_interval: 30s}\n", ":3: receivers[0].watchdog_interval: want 0s for none, or at least 1m"},
		{ok + "receivers:\n  - {name: a, type: alertmanager, url: http://a/, watchdog_interval: 5m}\n", ":3: receivers[0].watchdog_interval: want at most 2m"},
		{ok + "\"\\e[2J\": 1\n", `:2: unknown setting`},
		{strings.Repeat("#", 1<<20) + "\n", "larger than"},
		{ok + "db: \xff\n", ""},
	}
	env := map[string]string{"PASSWORD": password}
	for _, tt := range tests {
		_, err := load(t, tt.text, env)
		switch {
		case err == nil:
			t.Errorf("%.300q passed", tt.text)
		case !errors.Is(err, config.ErrInvalid):
			t.Errorf("%.300q: %v does not match ErrInvalid", tt.text, err)
		case !strings.Contains(err.Error(), tt.want):
			t.Errorf("%.300q: %v, want %q in it", tt.text, err, tt.want)
		case strings.Contains(err.Error(), password):
			t.Errorf("%.300q: %v shows a password", tt.text, err)
		}
	}
}

// Events can be posted instead of read, also on an address of the network if something
// encrypts the way.
func TestIngestInPlaceOfABroker(t *testing.T) {
	const sender = "ingest:\n  - {name: a, token: 0123456789abcdef, services: [a, b]}\n"
	for _, text := range []string{
		sender,
		"listen: 10.0.0.1:9440\nweb: {allow_anybody: true, allow_plain_http: true}\n" + sender,
		"listen: 10.0.0.1:9440\nweb: {allow_anybody: true, tls_cert_file: a, tls_key_file: b}\n" + sender,
	} {
		c, err := load(t, text, nil)
		if err != nil || len(c.Ingest) != 1 || len(c.Ingest[0].Services) != 2 {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

// A service may have any name: a blank in it must not make two of it, for which the token
// would speak in place of this one.
func TestServiceWithABlank(t *testing.T) {
	const text = "ingest:\n  - {name: a, token: 0123456789abcdef, services: [my shop, '${MORE}']}\n"
	c, err := load(t, text, map[string]string{"MORE": "b, c"})
	if err != nil || !slices.Equal(c.Ingest[0].Services, []string{"my shop", "b", "c"}) {
		t.Errorf("%q, %v", c.Ingest[0].Services, err)
	}
}

// All that is wrong is said at once.
func TestAllProblems(t *testing.T) {
	_, err := load(t, "lisen: a\nlog: {level: loud}\nredis: [{}]\n", nil, "-listen", "nowhere", "-redis-nodes", "a")
	if err == nil {
		t.Fatal("passed")
	}
	for _, want := range []string{
		"m.yaml:1: lisen", "m.yaml:2: log.level", "m.yaml:3: redis[0].name", "flag -listen: listen: want host:port", "flag -redis-nodes: redis: want host:port", "amqp_url: is not set",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-config", "/missing.yaml"}, {"-lisen", "a"}, {"-log-level", "debug"}, {"-db", ""}, {"-" + broker}, {"-listen"}, {"-config", t.TempDir()},
	} {
		_, _, err := config.Load(config.Source{Args: args, Getenv: os.Getenv})
		if !errors.Is(err, config.ErrInvalid) || strings.Contains(err.Error(), password) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, _, err := config.Load(config.Source{Getenv: os.Getenv, Needs: config.Nothing}); err != nil {
		t.Errorf("without a broker: %v", err)
	}
	if _, _, err := config.Load(config.Source{Getenv: func(string) string { return "" }, Needs: config.Broker}); !errors.Is(err, config.ErrInvalid) {
		t.Errorf("a command that asks the broker: %v", err)
	}
	if _, _, err := config.Load(config.Source{Args: []string{"-h"}, Getenv: os.Getenv}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	_, rest, err := config.Load(config.Source{
		Args: []string{"-amqp-url", broker, "-n", "3", "a", "-b"}, Getenv: os.Getenv,
		Flags: func(fs *flag.FlagSet) { fs.Int("n", 0, "") },
	})
	if err != nil || !reflect.DeepEqual(rest, []string{"a", "-b"}) {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// A secret does not show, however it is printed, logged or encoded.
func TestSecretDoesNotShow(t *testing.T) {
	c, err := load(t, whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", c)
		fmt.Fprintf(&out, verb+"\n", c.AMQPURL)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("settings", "all", c, "one", c.AMQPURL, "redis", c.Redis)
	}
	asJSON, err := json.Marshal(c.Redis)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(slices.Concat(asJSON, asYAML))
	for _, secret := range []string{password, "t0ken", "SEC1"} {
		if strings.Contains(out.String(), secret) || strings.Contains(out.String(), fmt.Sprintf("%x", secret)) {
			t.Errorf("%s shows in %s", secret, &out)
		}
	}
	if !strings.Contains(string(asYAML), "password: '[hidden]'") {
		t.Errorf("YAML does not say that a password is set: %s", asYAML)
	}
}

// Whatever the file holds, reading it ends with settings or with an error that
// holds no secret.
func FuzzFile(f *testing.F) {
	f.Add([]byte(whole))
	for _, text := range []string{
		"a: &a [*a]\n", "a: &a {b: *a}\n<<: *a\n", "? - a\n: - b\n--- !!binary x\n...\n%YAML 1.1\n", "web: {metrics_token: hunter2, metrics_token: 1}\n",
		"amqp_url: [hunter2]\n", "amqp_url: {hunter2: 1}\n", "amqp_url: ${hunter2}\n", "amqp_url: 'hunter2\n", "redis: [{password: \"hunter2\\q\"}]\n",
		"redis:\n  - {name: a, nodes: [a:1], password: |\n    hunter2}\n", "amqp_url_file: hunter2\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, err := config.Load(config.Source{Args: []string{"-config", path}, Getenv: func(string) string { return "" }})
		switch {
		case err == nil && c.AMQPURL == "":
			t.Error("passed without a broker")
		case err != nil && !errors.Is(err, config.ErrInvalid):
			t.Errorf("%v does not match ErrInvalid", err)
		case err != nil && strings.Contains(err.Error(), password) && isSecret(text):
			t.Errorf("%v shows a secret", err)
		}
	})
}

// isSecret reports whether the password stands in values of secrets only.
func isSecret(text []byte) bool {
	var doc yaml.Node
	return yaml.Unmarshal(text, &doc) != nil || inSecrets(&doc)
}

func inSecrets(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return !strings.Contains(n.Value+n.Anchor+n.Tag, password) && !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !inSecrets(c) })
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		secret := slices.Contains([]string{"amqp_url", "token", "metrics_token", "password", "sentinel_password", "url", "secret"}, key.Value) &&
			value.Kind == yaml.ScalarNode && !strings.Contains(value.Value, "${") // the name of a variable is no secret
		if !inSecrets(key) || !secret && !inSecrets(value) {
			return false
		}
	}
	return true
}

// Who may reach the page is decided before anything listens.
func TestListenNeedsAuthentication(t *testing.T) {
	for text, want := range map[string]bool{
		"listen: 0.0.0.0:9440": false, "listen: :9440": false, "listen: '[::]:9440'\nweb: {writes: true}": false,
		"listen: 0.0.0.0:9440\nweb: {users_file: users}":                                    false,
		"listen: 0.0.0.0:9440\nweb: {metrics_token: 0123456789abcdef}":                      false,
		"listen: 0.0.0.0:9440\nweb: {users_file: users, allow_anybody: true}":               false,
		"listen: 0.0.0.0:9440\nweb: {allow_plain_http: true}":                               false,
		"listen: 0.0.0.0:9440\nweb: {users_file: users, allow_plain_http: true}":            true,
		"listen: 0.0.0.0:9440\nweb: {users_file: users, tls_cert_file: a, tls_key_file: b}": true,
		"listen: 127.0.0.1:9440\nweb: {users_file: users}":                                  true,
		"listen: 0.0.0.0:9440\nweb: {allow_anybody: true}":                                  true,
		"web: {tls_cert_file: tls.crt, tls_key_file: tls.key}":                              true,
		"listen: localhost:0": true, "listen: '[::1]:9440'": true,
	} {
		if _, err := load(t, "amqp_url: amqp://u:p@127.0.0.1:5672/\n"+text+"\n", nil); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
