package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
)

// Every error says where the wrong setting stands, and hides secrets.
func TestWrong(t *testing.T) {
	const ok = "amqp_url: " + broker + "\n"
	tests := []struct{ text, want string }{
		{"# nothing\n", "amqp_url: is not set (flag -amqp-url, environment BELAY_AMQP_URL)"},
		{ok + "lisen: 127.0.0.1:1\n", `:2: lisen: unknown setting; did you mean listen?`},
		{ok + "log:\n  colour: red\n", ":3: log.colour: unknown setting"},
		{ok + "quiet: 1m\n", ":2: quiet: unknown setting; did you mean incidents.quiet?"},
		{ok + "log: info\n", ":2: log: want settings"},
		{ok + "listen: [a]\n", `:2: listen: "a"`},
		{ok + "listen: {a: b}\n", ":2: listen: want a value"},
		{ok + "listen:\n", ":2: listen: has no value"},
		{ok + "listen: 0.0.0.0:9440\n", ":2: listen: \"0.0.0.0:9440\": not a loopback address"},
		{ok + "db: a\ndb: b\n", ":3: db: is set in line 2 already"},
		{ok + "retention:\n  events: 1 month\n", `:3: retention.events: "1 month" is no duration`},
		{ok + "retention:\n  events: 1s\n", ":3: retention.events: 1s is outside"},
		{ok + "retention:\n  max_bytes: 2GB\n", ":3: retention.max_bytes"},
		{ok + "retention:\n  max_bytes: 9999999TiB\n", ":3: retention.max_bytes"},
		{ok + "retention:\n  max_events: 1.5\n", ":3: retention.max_events"},
		{ok + "log:\n  level: loud\n", ":3: log.level"},
		{ok + "time_zone: Mars/Olympus\n", ":2: time_zone"},
		{ok + "time_zone: ../../etc/passwd\n", ":2: time_zone"},
		{ok + "external_url: monitor.example.com\n", ":2: external_url"},
		{ok + "external_url: https://u:" + password + "@h/\n", ":2: external_url"},
		{"amqp_url: http://u:" + password + "@h/\n", ":1: amqp_url: url must begin with amqp"},
		{"amqp_url: *" + password + "\n", "unknown anchor"},
		{"amqp_url: !" + password + "\n", ":1: amqp_url: tags"},
		{"amqp_url: &" + password + "\n", ":1: amqp_url: tags"},
		{"a: &x [1]\nb: *x\n", ":2: b: unknown setting"},
		{ok + "db: &x a\nlisten: *x\n", ":3: listen: aliases"},
		{ok + "\tdb: a\n", ":2: found a tab character that violates indentation"},
		{ok + "db: 'a\n", ":"},
		{ok + "---\ndb: a\n", "only one document"},
		{"- a\n", ":1: want settings"},
		{"just text\n", ":1: want settings"},
		{ok + "1: 2\n? [a]\n: b\n", "want the name of a setting"},
		{ok + "redis: 127.0.0.1:1\n", ":2: redis: want a list"},
		{ok + "redis:\n  - nodes: [a:1]\n", ":3: redis name: is not set"},
		{ok + "redis:\n  - name: a\n", ":3: redis nodes: is not set"},
		{ok + "redis:\n  - name: a\n    nodes: [a]\n", ":4: redis nodes: want host:port"},
		{ok + "redis:\n  - name: a\n    nodes: []\n", ":4: redis nodes: names no node"},
		{ok + "redis:\n  - name: a b\n    nodes: [a:1]\n", ":3: redis: name"},
		{ok + "redis:\n  - {name: a, nodes: [a:1]}\n  - {name: a, nodes: [a:1]}\n", ":4: redis: another has the name"},
		{ok + "redis:\n  - {name: a, nodes: [a:1], tls: yes}\n", ":3: redis tls"},
		{ok + "receivers:\n  - text\n", ":3: receivers: want settings"},
		{ok + "receivers:\n  - {name: a, type: pager, url: http://a/}\n", ":3: receivers: type"},
		{ok + "receivers:\n  - {name: a, type: slack}\n", ":3: receivers url: is not set"},
		{ok + "receivers:\n  - {name: a, type: slack, url: \"ftp://" + password + "\"}\n", ":3: receivers: url must begin"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, url_fle: x}\n", "did you mean url_file?"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/, group_by: [key]}\n", ":3: receivers group_by"},
		{ok + "receivers:\n  - {name: a, type: slack, url: http://a/}\n  - {name: a, type: slack, url: http://a/}\n", ":4: receivers: another"},
		{ok + "receivers:\n  - name: a\n    type: alertmanager\n    url: http://a/\n    rate_limit: 1\n", ":6: receivers rate_limit: is up to Alertmanager"},
		{ok + "receivers:\n  - name: a\n    type: alertmanager\n    url: http://a/\n    max_alerts: 1\n", ":6: receivers max_alerts: is up to Alertmanager"},
		{ok + "\"\\e[2J\": 1\n", `"\x1b[2J": unknown setting`},
		{strings.Repeat("#", 1<<20) + "\n", "larger than"},
		{ok + "db: \xff\n", ""},
	}
	for _, tt := range tests {
		_, err := load(t, tt.text, nil)
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

// All that is wrong is said at once.
func TestAllProblems(t *testing.T) {
	_, err := load(t, "lisen: a\nlog: {level: loud}\n", map[string]string{"BELAY_MONITOR_DB": "a"}, "-time-zone", "Nowhere")
	if err == nil {
		t.Fatal("passed")
	}
	for _, want := range []string{"m.yaml:1: lisen", "m.yaml:2: log.level", "flag -time-zone: time_zone", "amqp_url: is not set"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-config", "/missing.yaml"}, {"-lisen", "a"}, {"-" + broker}, {"-listen"}, {"-config", t.TempDir()},
	} {
		_, _, err := config.Load(config.Source{Args: args, Getenv: nothing})
		if !errors.Is(err, config.ErrInvalid) || strings.Contains(err.Error(), password) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, _, err := config.Load(config.Source{Getenv: nothing, NoBroker: true}); err != nil {
		t.Errorf("without a broker: %v", err)
	}
	if _, _, err := config.Load(config.Source{Args: []string{"-h"}, Getenv: nothing}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	_, rest, err := config.Load(config.Source{
		Args: []string{"-amqp-url", broker, "-n", "3", "a", "-b"}, Getenv: nothing,
		Flags: func(fs *flag.FlagSet) { fs.Int("n", 0, "") },
	})
	if err != nil || !reflect.DeepEqual(rest, []string{"a", "-b"}) {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// Whatever the file holds, reading it ends with settings or with an error that
// names a place and no secret.
func FuzzFile(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(config.Sample()))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("a: &a {b: *a}\n<<: *a\n"))
	f.Add([]byte("? - a\n: - b\n--- !!binary x\n...\n%YAML 1.1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, err := config.Load(config.Source{Args: []string{"-config", path}, Getenv: nothing})
		switch {
		case err == nil && c.AMQPURL == "":
			t.Error("passed without a broker")
		case err != nil && !errors.Is(err, config.ErrInvalid):
			t.Errorf("%v does not match ErrInvalid", err)
		}
	})
}

// Who may reach the page is decided before anything listens.
func TestListenNeedsAuthentication(t *testing.T) {
	tests := []struct {
		args []string
		want string // in the error; empty = none
	}{
		{[]string{"-listen", "0.0.0.0:9440"}, "not a loopback address"},
		{[]string{"-listen", ":9440"}, "not a loopback address"},
		{[]string{"-listen", "[::]:9440", "-web-writes", "true"}, "not a loopback address"},
		{[]string{"-listen", "0.0.0.0:9440", "-web-users-file", "users"}, ""},
		{[]string{"-listen", "0.0.0.0:9440", "-web-token", "0123456789abcdef"}, ""},
		{[]string{"-listen", "0.0.0.0:9440", "-web-allow-anybody", "true"}, ""},
		{[]string{"-listen", "monitor.example.com:9440", "-web-token", "0123456789abcdef"}, "want an IP address or localhost"},
		{[]string{"-web-tls-cert-file", "tls.crt"}, "come together"},
		{[]string{"-web-tls-cert-file", "tls.crt", "-web-tls-key-file", "tls.key"}, ""},
	}
	for _, tt := range tests {
		_, err := load(t, "amqp_url: amqp://u:p@127.0.0.1:5672/\n", nil, tt.args...)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.want)
		}
	}
}
