package web_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/notify"
)

// TestAPINames: members of the API may be added; none goes away or is renamed.
func TestAPINames(t *testing.T) {
	s := newSite(t, withWrites, func(c *web.Config) { c.Clusters = someClusters{} })
	ev := event("event-1")
	ev.Verdict, ev.Outcome = notify.VerdictUnknownCommit, notify.OutcomeUnknown
	s.add(t, ev)
	s.explain(t, func(i *incident.Incident) { i.MergedInto = "other" })
	s.failover(t, time.Now())
	s.report(t, "orders", "1", 0, incident.Record{Epoch: 2, From: "redis", To: "sql", By: "alice", Left: time.Minute})
	s.report(t, "orders", "2", 0, incident.Record{})
	s.sent(t, "mail", 0, incident.Messages{Table: "shop.belay_message", Waiting: 1})
	s.called(t, "3", 0, incident.Calls{Table: "shop.belay_pending", Pending: 1})
	s.do(t, "POST", "/incidents/"+incidentID+"/ack", "by=bob")
	s.do(t, "POST", "/api/v1/silences", `{"by":"bob","matchers":[{"field":"service","value":"orders"}],"duration":"90m","comment":"c"}`)
	s.do(t, "DELETE", "/api/v1/silences/1", `{"by":"eve"}`)
	for path, want := range map[string]string{
		"overview": `open_incidents critical unacknowledged since incidents last_failover broker_connected store_takes_events dead_letters
			newest_event_received_at newest_heartbeat_received_at clusters services events_last_hour events_hour_before events_at_least`,
		"incidents": `id service cause severity state confidence cluster shard place first_at last_at opened_at updated_at events failures
			keys unknowns effect regressed evidence next_step runbook acked_by acked_at silenced merged_into`,
		"incidents effect":   "text rolled_back committed unknown without_lock refused keys_in_doubt",
		"incidents evidence": "at node kind entry for text numbers",
		"events":             "seq received_at incident event",
		"timeline":           "id at since kind cluster shard node peer numbers text",
		"clusters":           "name mode seen_at stale nodes",
		"clusters nodes":     "addr up role epoch",
		"services":           "service instance received_at every_seconds silent switch",
		"services switch":    "epoch from to by settled since moves_until instances knowing behind late",
		"messages":           "service table waiting oldest_seconds parked dead undecided oldest_dead_seconds counted_at stale",
		"calls":              "service table pending oldest_seconds undecided oldest_undecided_seconds counted_at stale",
		"silences":           "id matchers start end author comment ended_by active",
		"audit":              "id at who remote action subject",
	} {
		route, inside, _ := strings.Cut(path, " ")
		v := s.json(t, "/api/v1/"+route)
		if items, ok := v["items"].([]any); ok {
			v = items[len(items)-1].(map[string]any)
		}
		for name := range strings.FieldsSeq(inside) {
			switch part := v[name].(type) {
			case map[string]any:
				v = part
			case []any:
				v = part[len(part)-1].(map[string]any)
			}
		}
		for name := range strings.FieldsSeq(want) {
			if _, ok := v[name]; !ok {
				t.Errorf("%s has no %s but %s", path, name, slices.Sorted(maps.Keys(v)))
			}
		}
	}
}

// An empty list is [], not null.
func TestAPIEmptyLists(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Clusters = unseenCluster{} })
	for route, want := range map[string]string{
		"incidents": `{"items":[]}`, "events": `{"items":[]}`, "timeline": `{"items":[]}`, "services": `{"items":[]}`, "silences": `{"items":[]}`,
		"audit": `{"items":[]}`, "clusters": `"nodes":[]`, "overview": `"incidents":[]`,
	} {
		mustContain(t, s.get(t, "/api/v1/"+route).Body.String(), want)
	}
}

type unseenCluster struct{}

func (unseenCluster) Clusters() []watch.Cluster { return []watch.Cluster{{Name: "main"}} }
