package config_test

import (
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/monitor/config"
	"github.com/belaygo/belay/internal/monitor/receiver"
)

const (
	password = "hunter2"
	broker   = "amqp://user:" + password + "@127.0.0.1:5672/"
)

// load reads a file of that text, with env and args.
func load(t *testing.T, text string, env map[string]string, args ...string) (*config.Config, error) {
	t.Helper()
	if text != "" {
		args = append([]string{"-config", write(t, "m.yaml", text)}, args...)
	}
	c, rest, err := config.Load(config.Source{Args: args, Getenv: func(name string) string { return env[name] }})
	if len(rest) > 0 {
		t.Errorf("arguments %q are left", rest)
	}
	return c, err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	c, err := load(t, "", map[string]string{"BELAY_AMQP_URL": broker})
	if err != nil {
		t.Fatal(err)
	}
	if c.AMQPURL != broker || c.DB != "guard-monitor.db" || c.Listen != "127.0.0.1:9440" || c.LogLevel != slog.LevelInfo ||
		c.Location != time.UTC || c.Retention.Events != 30*24*time.Hour || c.Retention.MaxBytes != 1<<30 ||
		c.Incidents.Quiet != 10*time.Minute || len(c.Redis)+len(c.Receivers) != 0 {
		t.Errorf("defaults: %+v", c)
	}
}

// The file weighs least, then the environment, then flags.
func TestWeight(t *testing.T) {
	const file = "db: file.db\nlisten: 127.0.0.1:1\nlog:\n  level: warn\n"
	env := map[string]string{"BELAY_AMQP_URL": broker, "BELAY_MONITOR_DB": "env.db", "BELAY_MONITOR_LISTEN": "127.0.0.1:2"}
	c, err := load(t, file, env, "-listen", "127.0.0.1:3")
	if err != nil {
		t.Fatal(err)
	}
	if c.DB != "env.db" || c.Listen != "127.0.0.1:3" || c.LogLevel != slog.LevelWarn {
		t.Errorf("db %q, listen %q, level %v", c.DB, c.Listen, c.LogLevel)
	}
	// What is outweighed may be wrong.
	if _, err := load(t, "listen: nowhere\n", env, "-listen", "127.0.0.1:3"); err != nil {
		t.Errorf("an outweighed value: %v", err)
	}
	// An empty variable is none, as in most programs; an empty flag is one.
	if c, err := load(t, "db: file.db\n", map[string]string{"BELAY_AMQP_URL": broker, "BELAY_MONITOR_DB": ""}); err != nil || c.DB != "file.db" {
		t.Errorf("with an empty variable: %v, %v", c, err)
	}
	if _, err := load(t, "db: file.db\n", env, "-db", ""); err == nil || !strings.Contains(err.Error(), "flag -db") {
		t.Errorf("with an empty flag: %v", err)
	}
}

const whole = `
amqp_url: ` + broker + `
external_url: https://monitor.example.com/belay/
time_zone: Asia/Shanghai
log: {level: debug, format: json}
retention:
  events: 12h
  max_bytes: 64MiB
redis:
  - name: main
    nodes: [127.0.0.1:7001, "127.0.0.1:7002"]
    password: ` + password + `
  - name: other
    nodes: 127.0.0.1:26379
    sentinel_master: mymaster
    tls: true
receivers:
  - name: night
    type: dingtalk
    url: https://oapi.dingtalk.com/robot/send?access_token=t0ken
    secret: SEC1
    mentions: ["13800000000", all]
    group_by: [service]
    repeat_interval: 1d
    send_resolved: false
  - name: alerts
    type: alertmanager
    url: http://127.0.0.1:9093
`

func TestWhole(t *testing.T) {
	c, err := load(t, whole, map[string]string{
		"BELAY_MONITOR_RECEIVERS_NIGHT_SECRET": "SEC2", "BELAY_MONITOR_REDIS_OTHER_USERNAME": "monitor",
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.ExternalURL != "https://monitor.example.com/belay" || !c.LogJSON || c.Retention.MaxBytes != 64<<20 {
		t.Errorf("read %+v", c)
	}
	wantRedis := []config.Redis{
		{Name: "main", Nodes: []string{"127.0.0.1:7001", "127.0.0.1:7002"}, Password: password},
		{Name: "other", Nodes: []string{"127.0.0.1:26379"}, SentinelMaster: "mymaster", Username: "monitor", TLS: true},
	}
	if !reflect.DeepEqual(c.Redis, wantRedis) {
		t.Errorf("redis %+v\nwant  %+v", c.Redis, wantRedis)
	}
	night, alerts := c.Receivers[0], c.Receivers[1]
	if night.Kind != receiver.DingTalk || night.Secret != "SEC2" || night.Resolved || night.RepeatInterval != 24*time.Hour ||
		night.GroupWait != 5*time.Second || night.Location.String() != "Asia/Shanghai" || !reflect.DeepEqual(night.Mentions, []string{"13800000000", "all"}) {
		t.Errorf("receiver %+v", night)
	}
	if len(alerts.GroupBy) > 0 || alerts.RepeatInterval != receiver.AlertmanagerRepeat || alerts.RatePerMinute != 0 || !alerts.Resolved {
		t.Errorf("receiver %+v", alerts)
	}
}

func TestRedisFromTheCommandLine(t *testing.T) {
	env := map[string]string{"BELAY_MONITOR_REDIS_REDIS_PASSWORD": password, "BELAY_MONITOR_REDIS_NODES": "127.0.0.1:1"}
	c, err := load(t, whole, env, "-redis-nodes", "127.0.0.1:7001,127.0.0.1:7002")
	want := []config.Redis{{
		Name: "redis", Nodes: []string{"127.0.0.1:7001", "127.0.0.1:7002"}, Password: password,
	}}
	if err != nil || !reflect.DeepEqual(c.Redis, want) {
		t.Errorf("redis %+v, %v, want %+v", c, err, want)
	}
}

func TestSecretFromFile(t *testing.T) {
	path := write(t, "secret", broker+"\n")
	for name, load := range map[string]func() (*config.Config, error){
		"file":        func() (*config.Config, error) { return load(t, "amqp_url_file: "+path+"\n", nil) },
		"environment": func() (*config.Config, error) { return load(t, "", map[string]string{"BELAY_AMQP_URL_FILE": path}) },
		"flag":        func() (*config.Config, error) { return load(t, "amqp_url: amqp://x:1/\n", nil, "-amqp-url-file", path) },
	} {
		if c, err := load(); err != nil || c.AMQPURL != broker {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if _, err := load(t, "amqp_url_file: "+path+"\namqp_url: "+broker+"\n", nil); err == nil {
		t.Error("a secret and its file together passed")
	}
	if c, err := load(t, "amqp_url_file: /missing\n", map[string]string{"BELAY_AMQP_URL": broker}); err != nil || c.AMQPURL != broker {
		t.Errorf("an outweighed file: %v", err)
	}
	for _, wrong := range []string{"/missing", t.TempDir(), "/dev/zero", write(t, "empty", "\n")} {
		if _, err := load(t, "amqp_url_file: "+wrong+"\n", nil); err == nil || !strings.Contains(err.Error(), "m.yaml:1: amqp_url_file") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

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

func nothing(string) string { return "" }

func TestShow(t *testing.T) {
	c, err := load(t, whole, map[string]string{"BELAY_MONITOR_DB": "env.db"}, "-listen", "127.0.0.1:3")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := c.Show(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`amqp_url +\[hidden\] +\S+m\.yaml:2\n`, `db +env\.db +environment BELAY_MONITOR_DB\n`,
		`listen +127\.0\.0\.1:3 +flag -listen\n`, `log\.level +debug +\S+m\.yaml:5\n`, `docs_url +\S+ +default\n`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("%s\nlacks %s", b.String(), want)
		}
	}
	if strings.Contains(b.String(), password) {
		t.Errorf("shows a password: %s", b.String())
	}
}

var update = flag.Bool("update", false, "write the sample file and the table of settings")

// The sample file has every setting, and its values pass.
func TestSample(t *testing.T) {
	path := filepath.Join("..", "..", "..", "deploy", "guard-monitor.yaml")
	if *update {
		if err := os.WriteFile(path, []byte(config.Sample()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != config.Sample() {
		t.Error("deploy/guard-monitor.yaml is not what Sample returns; run this test with -update")
	}
	live := regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAllString(string(have), "$1")
	for _, line := range []string{"    secret: SEC...\n", "    mentions: [\"13800000000\"]\n"} { // not for a webhook
		live = strings.Replace(live, line, "", 1)
	}
	if _, err := load(t, live, nil); err != nil {
		t.Errorf("the sample, uncommented: %v\n%s", err, live)
	}
	var help strings.Builder
	if err := config.Usage(&help); err != nil {
		t.Fatal(err)
	}
	for _, name := range config.OptionNames() {
		if strings.HasSuffix(name, "_file") {
			continue
		}
		flagged := strings.NewReplacer(".", "-", "_", "-").Replace(name)
		last := name[strings.LastIndexByte(name, '.')+1:]
		if !strings.Contains(help.String(), "\n  -"+flagged+" ") {
			t.Errorf("help lacks -%s", flagged)
		}
		if !regexp.MustCompile(`(?m)^# *` + last + `: `).Match(have) {
			t.Errorf("the sample lacks %s", name)
		}
	}
}

// The table of settings in the documentation is that of the code.
func TestDocumented(t *testing.T) {
	const begin, end = "<!-- settings -->\n", "<!-- /settings -->"
	path := filepath.Join("..", "..", "..", "docs", "operations.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no table of settings", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+config.OptionTables()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != config.OptionTables() {
		t.Error("the settings in docs/operations.md are not those of the code; run this test with -update")
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
