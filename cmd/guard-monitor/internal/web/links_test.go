package web_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// The links to the events of a key and to the time of an incident lead there.
func TestLinksWithAQuery(t *testing.T) {
	s := newSite(t)
	ev := event("event-1")
	ev.Key = "order:1/a b&c=%3A"
	s.add(t, ev)
	i := s.explain(t, func(i *incident.Incident) { i.FirstAt = i.FirstAt.AddDate(0, -1, 0); i.LastAt = i.FirstAt })
	follow := func(page, link string) string {
		t.Helper()
		m := regexp.MustCompile(`href="(` + link + `[^"]*)"`).FindStringSubmatch(s.page(t, page))
		if m == nil {
			t.Fatalf("%s has no link %s", page, link)
		}
		return s.page(t, strings.ReplaceAll(m[1], "&amp;", "&"))
	}
	mustContain(t, follow("/events/event-1", `/events\?key=`), "order:1/a b&amp;c=%3A", "/events/event-1")
	mustContain(t, follow("/incidents/"+i.ID, `/events\?incident=`), "/events/event-1")
	mustContain(t, follow("/incidents/"+i.ID, `/timeline\?`), "Incident began", i.FirstAt.UTC().Format("2006-01-02"))
}
