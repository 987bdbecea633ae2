package web_test

import (
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// An outage is no "failures: 0" on its page.
func TestOutageOnItsPage(t *testing.T) {
	s := newSite(t)
	ev := event("1")
	ev.Verdict, ev.Outcome, ev.Count = notify.VerdictUnavailable, notify.OutcomeRolledBack, 7780
	s.add(t, ev)
	s.explain(t, func(i *incident.Incident) { i.Cause, i.Evidence = incident.Restart, nil })
	for _, path := range []string{"/", "/incidents/" + incidentID} {
		page := s.page(t, path)
		mustContain(t, page, "Redis is down: 7,780 operations refused · orders", "refused: 7780, keys: 1", "Start the Redis process again")
		mustNotContain(t, page, "failures: 0")
	}
	mustContain(t, s.page(t, "/", "Accept-Language", "zh"), "Redis 已停止：7,780 个操作被拒绝")
}
