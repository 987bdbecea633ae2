package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// Many incidents with one cause are one line of the overview, and leave room for the others.
func TestAlikeIncidents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other := anIncident(func(i *incident.Incident) {
		i.ID, i.Key, i.Cause, i.Service = otherID, "other", incident.Bypass, "payments"
	})
	list := []incident.Incident{other}
	for n := range 50 {
		list = append(list, anIncident(func(i *incident.Incident) {
			i.ID, i.Key = fmt.Sprintf("0196f9c4-0000-7000-8000-0000000001%02d", n), fmt.Sprint(n)
			i.Cause, i.Service = incident.HeartbeatSilent, fmt.Sprintf("service-%d", n)
		}))
	}
	if err := s.store.Apply(t.Context(), list, nil); err != nil {
		t.Fatal(err)
	}
	page := s.page(t, "/")
	mustContain(t, page, `<a href="/incidents?cause=heartbeat_silent">50 services, one cause: Heartbeat silent</a>`, "incidents: 50, critical: 50",
		"without anybody on it: 50", `href="/incidents/`+otherID+`"`, "6 of 51 open incidents: show all")
	mustNotContain(t, page, "one cause: Bypass")
	if n := strings.Count(page, "<article"); n != 6 {
		t.Errorf("%d cards, want 5 that are alike and the other one", n)
	}
	mustContain(t, s.page(t, "/", "Accept-Language", "zh"), "50 个服务，同一原因：心跳中断")
	if items := s.json(t, "/api/v1/overview")["incidents"].([]any); len(items) != 20 {
		t.Errorf("the API has %d incidents, want the 20 most urgent", len(items))
	}

	// Of one service they are incidents, and so few that each has its card.
	one := newSite(t)
	list = nil
	for n := range 5 {
		list = append(list, anIncident(func(i *incident.Incident) {
			i.ID, i.Key = fmt.Sprintf("0196f9c4-0000-7000-8000-0000000001%02d", n), fmt.Sprint(n)
		}))
	}
	for more, want := range []bool{false, true} {
		if err := one.store.Apply(t.Context(), list, nil); err != nil {
			t.Fatal(err)
		}
		page := one.page(t, "/")
		if strings.Contains(page, "incidents, one cause: Failover") != want {
			t.Errorf("%d incidents: shown as one line: %t, want %t", 5+more, !want, want)
		}
		list = append(list, anIncident())
	}
}
