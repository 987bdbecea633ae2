package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// The variables that name this test and guard-monitor as they were built of an older commit.
// scripts/chaos builds both.
const olderName, olderMonitorName = "BELAY_CHAOS_OLDER_INSTANCE", "BELAY_CHAOS_OLDER_MONITOR"

// TestVersions has instances of this commit report to the guard-monitor of an older one, which is
// upgraded on its file while events come. Then instances of the older commit report to that of this
// one. The older one is tried on the file that was upgraded: it must refuse a schema that is newer.
func TestVersions(t *testing.T) {
	older, olderMonitor := os.Getenv(olderName), os.Getenv(olderMonitorName)
	if older == "" || olderMonitor == "" {
		t.Skip("no older commit is named: make chaos ON=alerts BELAY_CHAOS_OLDER=COMMIT")
	}
	v := newVersions(t, older, olderMonitor)
	for _, part := range []struct {
		name string
		run  func(*versions)
	}{
		{"this commit reports to the older guard-monitor", (*versions).reportToOlder},
		{"guard-monitor is upgraded while events come", (*versions).upgrade},
		{"the older commit reports to this guard-monitor", (*versions).reportFromOlder},
		{"the older guard-monitor is started again", (*versions).goBack},
	} {
		before := len(v.noted)
		part.run(v)
		fmt.Printf("%-47s %5d events\n", part.name, len(v.noted)-before)
	}
	v.check()
}

// reportToOlder loses locks of instances of this commit. The older monitor finds the cause. It takes
// heartbeats with members that it does not know. If it does not know a verdict, its events become
// dead letters, or stay with who posted them.
func (v *versions) reportToOlder() {
	v.serve(v.olderMonitor)
	v.deleted = v.inIncident(v.intercepted(os.Args[0], "order:{v}:a", "DEL"), incident.Deleted)
	if got := v.inIncident(v.lost(os.Args[0], "order:{v}:b", "DEL"), incident.Deleted); got != v.deleted {
		v.t.Errorf("the lock of b is in incident %s, that of a in %s", got, v.deleted)
	}

	err := v.post(v.newerPosted)
	if v.known = err == nil; !v.known && !errors.Is(err, notify.ErrInvalidEvent) {
		v.t.Errorf("an event of a newer verdict is posted to the older monitor: %v, want %v", err, notify.ErrInvalidEvent)
	}
	v.shop = v.openShop()
	for _, ev := range v.newer {
		v.report(ev)
	}
	if !v.known {
		testwait.Until(v.t, "the events of newer verdicts are dead letters", func() bool {
			return strings.HasSuffix(v.command(v.olderMonitor, "dlq", "list"), "2 of 2 dead letters\n")
		})
	}
	testwait.Until(v.t, "the heartbeats are taken", func() bool { return strings.Contains(v.get("services"), `"shop"`) })

	if err := errors.Join(v.beat(), v.post(v.posted)); err != nil {
		v.t.Errorf("posted to the older monitor: %v", err)
	}
	v.inIncident(v.posted.ID, incident.UnknownCommit)
}

// upgrade ends the older monitor and starts that of this commit on its file, while events come. The
// events that the older one rejected are taken then.
func (v *versions) upgrade() {
	v.command(v.newMonitor, "backup", v.copied)
	ctx, stop := context.WithCancel(v.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			v.report(anEvent("shop"))
		}
	}()
	come := func() bool { return v.taken() > 50 }
	testwait.Until(v.t, "events come", come)
	v.monitor.stop()
	v.serve(v.newMonitor)
	testwait.Until(v.t, "events come after the upgrade", come)
	stop()
	<-ended

	if !v.known {
		v.takeRejected()
	}
	v.inIncident(v.newer[0].ID, incident.DeadLetter)
	v.inIncident(v.newer[1].ID, incident.CallUndecided)
	v.inIncident(v.newerPosted.ID, incident.DeadLetter)
	testwait.Until(v.t, "messages and calls are counted", func() bool {
		return strings.Contains(v.get("messages"), messagesTable) && strings.Contains(v.get("calls"), callsTable)
	})
}

// takeRejected has the monitor take what the older one has rejected.
func (v *versions) takeRejected() {
	if out := v.command(v.newMonitor, "dlq", "replay", "all"); out != "2 dead letters replayed\n" {
		v.t.Errorf("dlq replay: %q", out)
	}
	if err := v.post(v.newerPosted); err != nil {
		v.t.Errorf("it is posted again, after the upgrade: %v", err)
	}
}

// reportFromOlder loses locks of instances of the older commit: two in the incident that was open when
// the monitor was upgraded, which has twice as many events then, and one in a new incident.
func (v *versions) reportFromOlder() {
	sent := v.sent(incident.Deleted)
	for _, event := range []string{v.intercepted(v.older, "order:{v}:c", "DEL"), v.lost(v.older, "order:{v}:d", "DEL")} {
		if got := v.inIncident(event, incident.Deleted); got != v.deleted {
			v.t.Errorf("after the upgrade a lock is in incident %s, before it was in %s", got, v.deleted)
		}
	}
	testwait.Until(v.t, "people are sent that it has grown", func() bool { return v.sent(incident.Deleted) > sent })
	v.inIncident(v.lost(v.older, v.elsewhere("order:{v}:c"), "FLUSHALL"), incident.Flushed)
}

// goBack starts the older monitor on the file of the newer one, which it refuses if the schema is newer, and
// has it read the copy from before. What comes meanwhile waits for the newer one.
func (v *versions) goBack() {
	v.monitor.stop()
	if v.sameSchema() {
		v.serve(v.olderMonitor)
		v.monitor.stop()
	} else {
		refuses := v.startMonitor(v.olderMonitor)
		testwait.Until(v.t, "the older monitor refuses the newer file", refuses.HasExited)
		if said := strings.Join(refuses.Lines(), "\n"); refuses.Err() == nil || !strings.Contains(said, "schema is newer") {
			v.t.Errorf("on the newer file the older monitor ended with %v, and said %q", refuses.Err(), said)
		}
	}
	if out := v.command(v.olderMonitor, "tail", "-db", v.copied, "-follow=false"); !strings.Contains(out, " overlap e2e/A ") {
		v.t.Errorf("the copy has no event of A: %q", out)
	}
	v.report(anEvent("shop"))
	v.serve(v.newMonitor)
}

// check compares the monitor with what was reported: each event is there once, in an incident that
// people were sent once, and no dead letter is left.
func (v *versions) check() {
	testwait.Until(v.t, "the monitor has all events, in incidents", func() bool { return v.grouped() >= len(v.noted) })
	want, incidents, twice := maps.Clone(v.noted), make(map[string]bool), 0
	for _, e := range v.all() {
		incidents[e.Incident] = true
		switch {
		case want[e.Event.ID]:
			delete(want, e.Event.ID)
		case v.noted[e.Event.ID]:
			twice++
		default:
			v.t.Errorf("nobody reported %+v", e.Event)
		}
	}
	if len(want) > 0 || twice > 0 {
		v.t.Errorf("%d events are lost: %v, %d are there twice", len(want), slices.Collect(maps.Keys(want)), twice)
	}
	for _, i := range v.items("incidents?show=all&limit=1000") {
		if incidents[i.ID] {
			v.wantOneAlert(i)
		}
	}
	if out := v.command(v.newMonitor, "dlq", "list"); out != "0 of 0 dead letters\n" {
		v.t.Errorf("dead letters are left: %s", out)
	}
	fmt.Printf("belay versions: %d events of two commits, %d lost, %d twice, in %d incidents\n", len(v.noted), len(want), twice, len(incidents))
}
