package config_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
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
	if len(alerts.GroupBy) > 0 || alerts.RepeatInterval != receiver.AlertmanagerRepeat || alerts.RatePerMinute != 0 || alerts.MaxAlerts != 0 || !alerts.Resolved {
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
