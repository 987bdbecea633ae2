package config_test

import (
	"os"
	"path/filepath"
	"reflect"
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

// The file weighs least, then the environment, then flags.
func TestWeight(t *testing.T) {
	const file = "db: file.db\nlisten: 127.0.0.1:1\nredis: [{name: a, nodes: a:1}]\n"
	env := map[string]string{"BELAY_AMQP_URL": broker, "BELAY_MONITOR_DB": "env.db"}
	c, err := load(t, file, env, "-listen", "127.0.0.1:3", "-redis-nodes", "b:1,b:2")
	want := []config.Redis{{Name: "redis", Nodes: []string{"b:1", "b:2"}}}
	if err != nil || c.DB != "env.db" || c.Listen != "127.0.0.1:3" || !reflect.DeepEqual(c.Redis, want) {
		t.Errorf("%+v, %v", c, err)
	}
	// An empty variable is none, as in most programs.
	if c, err := load(t, file, map[string]string{"BELAY_AMQP_URL": broker, "BELAY_MONITOR_DB": ""}); err != nil || c.DB != "file.db" {
		t.Errorf("with an empty variable: %v, %v", c, err)
	}
	env["BELAY_MONITOR_CONFIG"] = write(t, "other.yaml", "time_zone: Asia/Shanghai\n")
	if c, err := load(t, "", env); err != nil || c.Location().String() != "Asia/Shanghai" {
		t.Errorf("the file of the environment: %v, %v", c, err)
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
	c, err := load(t, whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.ExternalURL != "https://monitor.example.com/belay" || c.Log.Format != "json" || c.Retention.MaxBytes != 64<<20 {
		t.Errorf("read %+v", c)
	}
	wantRedis := []config.Redis{
		{Name: "main", Nodes: []string{"127.0.0.1:7001", "127.0.0.1:7002"}, Password: password},
		{Name: "other", Nodes: []string{"127.0.0.1:26379"}, SentinelMaster: "mymaster", TLS: true},
	}
	if !reflect.DeepEqual(c.Redis, wantRedis) {
		t.Errorf("redis %+v\nwant  %+v", c.Redis, wantRedis)
	}
	wantReceivers := []config.Receiver{
		{
			Name: "night", Type: receiver.DingTalk, URL: "https://oapi.dingtalk.com/robot/send?access_token=t0ken", Secret: "SEC1",
			Mentions: []string{"13800000000", "all"}, GroupBy: []string{"service"}, GroupWait: 5 * time.Second,
			GroupInterval: 5 * time.Minute, RepeatInterval: 24 * time.Hour, RateLimit: 18, Incidents: true,
		},
		{
			Name: "alerts", Type: receiver.Alertmanager, URL: "http://127.0.0.1:9093",
			RepeatInterval: receiver.AlertmanagerRepeat, SendResolved: true, Incidents: true,
		},
	}
	if !reflect.DeepEqual(c.Receivers, wantReceivers) {
		t.Errorf("receivers %+v\nwant      %+v", c.Receivers, wantReceivers)
	}
	if cfg := c.Receivers[0].Config(c.Location()); cfg.Location.String() != "Asia/Shanghai" || cfg.Secret != "SEC1" {
		t.Errorf("receiver.Config %+v", cfg)
	}
}

// A receiver that leaves out services or a severity, or waits, does not get all.
func TestGets(t *testing.T) {
	for settings, want := range map[string][2]bool{ // critical, warning
		"": {true, true}, "services: ['*', orders]": {true, true}, "services: orders": {}, "severities: critical": {true, false},
		"escalate_after: 1m": {}, "incidents: false, watchdog_interval: 1m": {},
	} {
		c, err := load(t, "amqp_url: "+broker+"\nreceivers:\n  - {name: a, type: slack, url: http://a/}\n  - {name: b, type: slack, url: http://b/, "+settings+"}\n", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := c.Receivers[1]
		if got := [2]bool{r.Gets("critical"), r.Gets("warning")}; got != want {
			t.Errorf("%q gets %v, want %v", settings, got, want)
		}
	}
}

// Without senders everybody may speak for all; with them, those named for theirs alone.
func TestAdmit(t *testing.T) {
	open, err := load(t, "amqp_url: "+broker+"\n", nil)
	if err != nil || open.Admit("", "orders") != nil || open.Admit("eve", "orders") != nil {
		t.Errorf("without senders somebody is refused: %v", err)
	}
	c, err := load(t, "amqp_url: "+broker+"\nsenders:\n  - {name: shop, services: [orders, stock]}\n  - {name: CN=mail, services: mail}\n  - {name: all, services: [\"*\"]}\n  - {name: pos, services: [Point of Sale]}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		sender, service string
		admitted        bool
	}{
		{"shop", "orders", true},
		{"shop", "stock", true},
		{"CN=mail", "mail", true},
		{"all", "mail", true},
		{"pos", "Point of Sale", true},
		{"pos", "Sale", false},
		{"shop", "mail", false},
		{"shop", "order", false},
		{"shop", "", false},
		{"Shop", "orders", false},
		{"eve", "orders", false},
		{"", "orders", false},
		{"", "", false},
	} {
		if err := c.Admit(tt.sender, tt.service); (err == nil) != tt.admitted {
			t.Errorf("Admit(%q, %q) = %v", tt.sender, tt.service, err)
		}
	}
}

// A variable becomes a part of a value and never of the file around it.
func TestVariables(t *testing.T) {
	env := map[string]string{
		"HOST": "127.0.0.1", "NODES": "a:1, b:2", "SIZE": "2GiB", "ON": "true",
		"PASSWORD": "*x\nlisten: 0.0.0.0:1 #${HOST}",
	}
	c, err := load(t, `
amqp_url: amqp://user@${HOST}/
retention: {max_bytes: "${SIZE}"}
web: {writes: "${ON}"}
redis:
  - {name: main, nodes: "${NODES}", password: "${PASSWORD}", username: "$HOST $$ $${HOST}"}
`, env)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Redis[0]
	if c.AMQPURL != "amqp://user@127.0.0.1/" || c.Retention.MaxBytes != 2<<30 || !c.Web.Writes || c.Listen != "127.0.0.1:9440" ||
		!reflect.DeepEqual(r.Nodes, []string{"a:1", "b:2"}) || string(r.Password) != env["PASSWORD"] || r.Username != "$HOST $$ ${HOST}" {
		t.Errorf("read %+v, redis %+v with %q", c, r, string(r.Password))
	}
}

func TestSecretFromFile(t *testing.T) {
	c, err := load(t, "amqp_url_file: "+write(t, "secret", broker+"\n")+"\n", nil)
	if err != nil || c.AMQPURL != broker {
		t.Errorf("%v, %v", c, err)
	}
	c, err = load(t, "web: {metrics_token_file: \"${FILE}\"}\n", map[string]string{"BELAY_AMQP_URL": broker, "FILE": write(t, "secret", "${HOME}")})
	if err != nil || c.Web.MetricsToken != "${HOME}" {
		t.Errorf("a variable in the file of a secret is replaced: %v", err)
	}
	for _, wrong := range []string{"/missing", t.TempDir(), "/dev/zero", write(t, "empty", "\n")} {
		if _, err := load(t, "amqp_url_file: "+wrong+"\n", nil); err == nil || !strings.Contains(err.Error(), "m.yaml:1: amqp_url_file: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
