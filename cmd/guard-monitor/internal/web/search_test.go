package web_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

var otherID = incidentID[:35] + "b"

// searched has an incident that is over, of key order:1, with the event one, which held
// further:1 too, and an open one of key order:2, with the event two.
func searched(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	ev := event("one")
	ev.Keys = []string{"order:1", "further:1"}
	s.add(t, ev)
	s.explain(t, func(i *incident.Incident) { i.State, i.ResolvedAt = incident.Resolved, i.LastAt })
	ev = event("two")
	ev.Service, ev.Key = "payments", "order:2"
	s.add(t, ev)
	s.explain(t, func(i *incident.Incident) { i.ID, i.Key, i.Service = otherID, "k2", "payments" })
	return s
}

// Each list is searched by key, service and event, without JavaScript. Who names a key or an
// event finds its incident, also if it is over.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := searched(t)
	for query, want := range map[string]string{
		"":                           "two",
		"key=order:1":                "one",
		"key=further:1":              "one",
		"key=order:1&show=open":      "",
		"key=order:2":                "two",
		"key=order:2&service=orders": "",
		"key=order:9":                "",
		"event=one":                  "one",
		"event=two":                  "two",
		"event=nine":                 "",
		"event=one&key=order:2":      "",
		"service=payments":           "two",
		"key=order:1&event=one&service=orders&show=resolved": "one",
	} {
		found := s.page(t, "/incidents?"+query)
		mustFind(t, "/incidents?"+query, found, want, "/incidents/"+incidentID+`"`, "/incidents/"+otherID+`"`)
		found = s.get(t, "/api/v1/incidents?"+query).Body.String()
		mustFind(t, "/api/v1/incidents?"+query, found, want, `"id":"`+incidentID, `"id":"`+otherID)
		if query == "" || strings.Contains(query, "show=") {
			continue
		}
		found = s.page(t, "/events?"+query)
		mustFind(t, "/events?"+query, found, want, "/events/one", "/events/two")
		found = s.page(t, "/timeline?"+query)
		mustFind(t, "/timeline?"+query, found, want, "/events/one", "/events/two")
		mustFind(t, "/timeline?"+query, found, want, "/incidents/"+incidentID+`"`, "/incidents/"+otherID+`"`)
	}
}

// mustFind checks that a page has what stands for the event that is wanted, and not the other.
func mustFind(t *testing.T, path, page, want, one, two string) {
	t.Helper()
	for event, link := range map[string]string{"one": one, "two": two} {
		if got := strings.Contains(page, link); got != (event == want) {
			t.Errorf("%s: has %s: %t, want %t", path, link, got, !got)
		}
	}
}

// The fields have what was searched for, and the tab that is shown.
func TestSearchForm(t *testing.T) {
	t.Parallel()
	s := searched(t)
	for _, path := range []string{"/incidents", "/events", "/timeline"} {
		page := s.page(t, path+"?key=order:1&event=one&service=orders")
		mustContain(t, page, `name="key" value="order:1"`, `name="event" value="one"`, `name="service" value="orders"`)
	}
	mustContain(t, s.page(t, "/incidents?key=order:1"), `show=all" aria-current="true"`)
	mustNotContain(t, s.page(t, "/incidents?key=order:1"), `name="show"`)
	mustContain(t, s.page(t, "/incidents?key=order:1&show=open"), `show=open" aria-current="true"`, `name="show" value="open"`)
}
