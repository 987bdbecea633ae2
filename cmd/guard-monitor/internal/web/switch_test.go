package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// report stores what an instance knows of the record of a switch, and returns since when.
func (s *site) report(t testing.TB, service, instance string, ago time.Duration, r incident.Record) (at time.Time) {
	t.Helper()
	at = time.Now().Add(-ago)
	h := incident.Heartbeat{Service: service, Instance: instance, At: at, Every: time.Minute, ReceivedAt: at, Record: r}
	if err := s.store.AddHeartbeat(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return at
}

// shown is a time as the pages have it for machines.
func shown(at time.Time) string {
	return `datetime="` + at.UTC().Format("2006-01-02T15:04:05.000Z") + `"`
}

// keeper is what the API has of the switch of orders.
func (s *site) keeper(t *testing.T) map[string]any {
	t.Helper()
	services := s.json(t, "/api/v1/services")["items"].([]any)
	k, _ := services[0].(map[string]any)["switch"].(map[string]any)
	return k
}

const keptTitle = "<h2>Where locks are kept</h2>"

func TestServiceWithOneEngine(t *testing.T) {
	s := newSite(t)
	s.report(t, "orders", "a", 0, incident.Record{})
	mustNotContain(t, s.page(t, "/"), keptTitle)
	if k := s.keeper(t); k != nil {
		t.Errorf("the API has %v", k)
	}
}

func TestSwitchIsShown(t *testing.T) {
	s := newSite(t)
	first := incident.Record{Epoch: 1, From: "redis", To: "redis", Settled: true, By: "first process"}
	for _, name := range []string{"a", "b", "c"} {
		s.report(t, "orders", name, 20*time.Second, first)
	}
	mustContain(t, s.page(t, "/"), keptTitle, "in redis", "known to 3 of 3 instances")

	moving := incident.Record{Epoch: 2, From: "redis", To: "sql", By: "alice", Left: 10 * time.Minute}
	since := s.report(t, "orders", "a", 10*time.Second, moving)
	ends := s.report(t, "orders", "b", 8*time.Second, moving).Add(moving.Left)
	mustContain(t, s.page(t, "/"), "moving from redis to sql", "ends", shown(ends), "by alice", "known to 2 of 3 instances, not to c")
	mustContain(t, s.page(t, "/", "Accept-Language", "zh"), "<h2>锁存放在哪里</h2>", "正从 redis 迁移到 sql", shown(ends), "由 alice 发起", "2/3 个实例已知晓，尚未知晓：c")
	mustNotContain(t, s.page(t, "/"), "Each instance should know")
	k := s.keeper(t)
	if k["epoch"] != 2.0 || k["from"] != "redis" || k["to"] != "sql" || k["by"] != "alice" || k["settled"] != false || k["moves_until"] == nil ||
		k["instances"] != 3.0 || k["knowing"] != 2.0 || fmt.Sprint(k["behind"]) != "[c]" || k["late"] != false {
		t.Errorf("the API has %v", k)
	}

	over := moving
	over.Settled, over.Left = true, 0
	s.report(t, "orders", "b", 5*time.Second, over)
	body := s.page(t, "/")
	mustContain(t, body, "in sql", shown(since), "before: redis", "by alice", `class="poor">Each instance should know`)
	mustNotContain(t, body, "moving from")
	if k = s.keeper(t); k["late"] != true || k["settled"] != true || k["moves_until"] != nil || k["since"] == nil {
		t.Errorf("the API has %v", k)
	}

	s.report(t, "orders", "c", 0, over)
	mustNotContain(t, s.page(t, "/"), "Each instance should know", "not to")
	mustContain(t, s.get(t, "/api/v1/overview").Body.String(), `"knowing":3`)
}

func TestManyInstancesBehind(t *testing.T) {
	s := newSite(t)
	for n := range 30 {
		s.report(t, "orders", fmt.Sprintf("pod-%02d", n), 0, incident.Record{})
	}
	s.report(t, "orders", "z", 0, incident.Record{Epoch: 1, From: "redis", To: "redis", Settled: true})
	body := s.page(t, "/")
	mustContain(t, body, "known to 1 of 31 instances", "pod-00", "pod-09, …")
	mustNotContain(t, body, "pod-10")
}

func TestHostileSwitch(t *testing.T) {
	s := newSite(t)
	const script = `</b><script>alert(1)</script>` + "\u202e\x1b"
	r := incident.Record{Epoch: 2, From: script, To: script + "2", By: script}
	s.report(t, "orders", "a"+script, 0, r)
	s.report(t, "orders", "b"+script, 0, incident.Record{})
	s.explain(t, func(i *incident.Incident) {
		i.Evidence = append(i.Evidence, incident.Evidence{Kind: incident.Switched, Switch: &incident.Between{From: script, To: script, By: script}})
	})
	for _, path := range []string{"/", "/incidents/" + incidentID} {
		mustNotContain(t, strings.ReplaceAll(s.page(t, path), `<script src="/assets/`, ""), "<script", "\u202e", "\x1b")
	}
	mustNotContain(t, s.get(t, "/api/v1/overview").Body.String(), "<script")
}
