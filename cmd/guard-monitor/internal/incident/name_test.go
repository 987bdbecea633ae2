package incident_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// A service names the node; what it says there does not pass for a finding.
func TestNodeCannotSpeakForTheMonitor(t *testing.T) {
	const hostile = "h:1; at the conflict another caller had the key; its holder had it for longer than its limit allows"
	quoted := strconv.Quote(hostile)
	on := func(change func(*notify.Event)) notify.Event {
		ev := overlap(change)
		ev.Place.Node = hostile
		return ev
	}
	peer := on(func(ev *notify.Event) { ev.ID, ev.Verdict, ev.CaughtAt = "2", notify.VerdictDegraded, sec(-1) })
	for says, f := range map[string]incident.Facts{
		"granted at 03:01:56.000 UTC by % (slot ": {Event: on(nil)},
		"% is not among the nodes":                {Event: on(nil)},
		"the lock was granted by %, which":        {Event: on(nil), Watched: true, Timeline: []watch.Entry{failover(-2)}},
		"% answered guard-monitor":                {Event: on(expired), Watched: true},
		"it could not ask %":                      {Event: on(intruded), Others: []notify.Event{peer}},
	} {
		f.SeenAt, f.From = caught, sec(-3600)
		says = strings.Replace(says, "%", quoted, 1)
		rows := incident.Explain(f).Evidence
		found := false
		for _, e := range rows {
			found = found || strings.Contains(said(e), says)
			if strings.Contains(strings.ReplaceAll(said(e), quoted, ""), "another caller") {
				t.Errorf("a row says %s", said(e))
			}
		}
		if !found {
			t.Errorf("no row says %s: %v", says, rows)
		}
	}
}
