package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/switchlock"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
	"github.com/belaygo/belay/notify/webhook"
	"github.com/belaygo/belay/relay"
)

const deploy = "../../deploy"

// Every metric that the rules and the dashboard name is one of the code's, and
// the documentation has all of these.
func TestMetricNames(t *testing.T) {
	known := metricNames(t)
	if len(known) < 40 {
		t.Fatalf("only %d metrics found: %v", len(known), known)
	}
	for _, file := range []string{"prometheus/belay.rules.yaml", "prometheus/belay.test.yaml", "grafana/belay.json"} {
		text, err := os.ReadFile(filepath.Join(deploy, file))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`belay_[a-z_]+`).FindAllString(string(text), -1)
		if len(named) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range named {
			base := strings.TrimSuffix(name, "_bucket")
			if !slices.Contains(known, base) || base != name && !strings.HasSuffix(base, "_seconds") {
				t.Errorf("%s names %s, which is no metric", file, name)
			}
		}
	}
	manual, err := os.ReadFile("../../docs/metrics.md")
	check(t, err)
	for _, name := range append(known, "belay_build_info") {
		if !strings.Contains(string(manual), "`"+name+"`") {
			t.Errorf("docs/metrics.md says nothing of %s", name)
		}
	}
	for _, name := range known {
		if !regexp.MustCompile(`^belay_(lock|redis|switch|guard|relay|outbox|rabbitmq|webhook|consumer|ingest|monitor)_[a-z_]+$`).MatchString(name) {
			t.Errorf("%s does not follow belay_<part>_<what>", name)
		}
	}
}

// metricNames asks every collector of the library and the monitor.
func metricNames(t *testing.T) (names []string) {
	t.Helper()
	db, err := gorm.Open(sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: filepath.Join(t.TempDir(), "a.db")}), &gorm.Config{})
	check(t, err)
	sqlDB, err := db.DB()
	check(t, err)
	t.Cleanup(func() { sqlDB.Close() })
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { client.Close() })
	engine, err := redislock.New(client, redislock.Config{})
	check(t, err)
	locker, err := lock.New(memlock.New(), lock.Config{})
	check(t, err)
	t.Cleanup(func() { check(t, locker.Close(context.Background())) })
	switched, err := switchlock.New(switchlock.Config{
		Source: noSource{}, Engines: map[string]lockengine.Engine{"memory": memlock.New()}, First: "memory", Logger: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	t.Cleanup(func() { check(t, switched.Close(context.Background())) })
	publisher, err := rabbitmq.New(deadURL, rabbitmq.Config{})
	check(t, err)
	t.Cleanup(func() { check(t, publisher.Close(context.Background())) })
	poster, err := webhook.New("http://127.0.0.1:1", webhook.Config{Token: ingestToken})
	check(t, err)
	t.Cleanup(func() { check(t, poster.Close(context.Background())) })
	consumer, err := intake.New(deadURL, intake.Config{})
	check(t, err)
	box, err := outbox.New(db, outbox.Config{})
	check(t, err)
	t.Cleanup(func() { check(t, box.Close(context.Background())) })
	check(t, relay.Migrate(t.Context(), db))
	messages, err := relay.New(db, relay.Config{
		Routes: []relay.Route{{Topic: relay.Others, Until: time.Hour, Handle: func(context.Context, relay.Message) error { return nil }}},
		Logger: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	t.Cleanup(func() { check(t, messages.Close(context.Background())) })
	g, err := guard.New(db, locker, guard.Config{Service: "orders", Calls: true, Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	t.Cleanup(func() { check(t, g.Close(context.Background())) })
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	check(t, err)
	t.Cleanup(func() { st.Close() })
	mon, err := monitor.New(t.Context(), monitor.Config{Store: st})
	check(t, err)
	endpoint, err := intake.NewEndpoint(intake.EndpointConfig{Take: mon.Take, Heartbeat: mon.Heard})
	check(t, err)
	dispatcher, err := dispatch.New(dispatch.Config{Store: st})
	check(t, err)

	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for _, c := range []prometheus.Collector{
		engine, locker, switched, publisher, poster, consumer, endpoint, box, messages, g, mon, dispatcher, monitor.NewState(st, nil, nil),
	} {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			names = append(names, name.FindStringSubmatch(d.String())[1])
		}
	}
	return names
}

// noSource is a source that can't be read.
type noSource struct{ switchlock.Source }

func (noSource) Read(context.Context) (switchlock.Record, error) {
	return switchlock.Record{}, errors.New("no record")
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The rules are what Prometheus understands, and fire when they should.
func TestRules(t *testing.T) {
	promtool := teststack.Program(t, "promtool", "prometheus")
	for _, args := range [][]string{{"check", "rules", "belay.rules.yaml"}, {"test", "rules", "belay.test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = filepath.Join(deploy, "prometheus")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// The dashboard is JSON whose panels have queries and do not overlap.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(deploy, "grafana", "belay.json"))
	check(t, err)
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Type    string `json:"type"`
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	check(t, json.Unmarshal(raw, &dashboard))
	taken := make(map[[2]int]string)
	for _, p := range dashboard.Panels {
		if p.Type != "row" && (len(p.Targets) == 0 || p.Targets[0].Expr == "") {
			t.Errorf("panel %q asks nothing", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[at]; ok {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[at] = p.Title
			}
		}
	}
}

// The settings for Kubernetes are right as soon as the Secret is there.
func TestSettingsForKubernetes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy, "kubernetes", "guard-monitor.yaml"))
	check(t, err)
	dir := t.TempDir()
	for name, secret := range map[string]string{
		"amqp_url": "amqp://monitor:secret@rabbitmq:5672/", "metrics_token": "0123456789abcdef",
		"users": "alice:$2y$05$abcdefghijklmnopqrstuuJ9Q1Yl7Ejb1hRuoT8dKYmUJTz6NP4lG",
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600))
	}
	settings := strings.ReplaceAll(string(text), "/run/secrets/guard-monitor", dir)
	if settings == string(text) {
		t.Fatal("they name no secrets")
	}
	file := filepath.Join(dir, "guard-monitor.yaml")
	check(t, os.WriteFile(file, []byte(settings), 0o600))
	if p := start(t, nil, "check-config", "-config", file); p.wait() != 0 {
		t.Errorf("check-config: %s", p.stderr)
	}
	db := filepath.Join(dir, "monitor.db")
	p := start(t, []string{"BELAY_MONITOR_DB=" + db}, "-config", file, "-listen", "127.0.0.1:0")
	p.eventually("it is up", func() bool { code, _ := p.get("/livez"); return code == 200 })
	if code, _ := p.get("/"); code != 401 {
		t.Errorf("the pages answer %d to nobody, want 401", code)
	}
	p.stop(syscall.SIGTERM)
}
