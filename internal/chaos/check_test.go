package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

// check compares what was promised with what the database and the monitor have.
func check(t *report, r run) {
	t.Helper()
	checkEvents(t, r)
	h := read(r.records, r.faults)
	h.behind = beds[r.head.Database].behind
	duplicates, lostUpdates, requests := checkRows(t, r.rows, h)
	e := &effects{t: t, h: h}
	messages, calls := e.messages(r.rows, r.outside.Left, !beds[r.head.Database].spread), e.payments(r)
	overlaps := h.overlaps()
	lost, reported, blind := checkOverlaps(t, h, overlaps)
	falseAlarms, lapsed, authors := 0, 0, r.rows.authors()
	for _, c := range h.calls {
		if h.falseAlarm(c, overlaps) {
			falseAlarms++
			t.Errorf("a false alarm:\n%s", c)
		}
		if c.lapsed() {
			lapsed++
		}
		checkCall(t, h, c, overlaps)
		if a := h.missed(c, r.head.Database, authors); a != nil {
			t.Errorf("taken for a repeat, though it was committed after the snapshot:\n%s\n%s", a, c)
		}
	}
	for _, rec := range r.records {
		if n := h.unreported(rec.worker); n != 0 && policyOf(rec.worker) == guard.FailClosed && !h.unpublished {
			t.Errorf("%s refused %d operations more than its events say", rec.worker, n)
		}
	}
	ordered, rows := checkOrder(t, h)
	results, operations := h.results(), len(firsts(h.calls))
	if lapsed > operations/100+1 {
		t.Errorf("%d of %d leases were not renewed in time", lapsed, operations)
	}
	t.Logf("results: %v, without a lock: %d, not renewed in time: %d", results, len(h.without()), lapsed)
	t.Logf("workloads: %v", kindsOf(h, messages, calls))
	sizes, told := h.crews()
	t.Logf("transactions by how many shared them: %v, events of these by their count: %v", sizes, told)
	older := slices.DeleteFunc(slices.Clone(r.records), func(rec *record) bool { return !rec.older })
	if len(older) > 0 {
		t.Logf("workers of an older build: %d of %d", len(older), len(r.records))
	}
	t.Logf("in one order: %d changes of %d rows", ordered, rows)
	t.Logf("faults: %v, COMMITs lost by workers: %v, events: %d", count(h.faults), h.losses(), len(r.events))
	if results[done] < operations/10 {
		t.Errorf("%d of %d operations were done", results[done], operations)
	}
	if r.head.Transfers {
		for _, rec := range r.records {
			checkTransfers(t, rec)
		}
	} else {
		t.Logf("%s", messages)
		t.Logf("%s", calls)
		if reported == 0 || messages.effects == 0 || calls.charges == 0 {
			t.Error("no overlap was provoked and reported, no message took effect, or nobody was charged: the test tests nothing")
		}
		if n := r.together(); n > 0 {
			t.Logf("attempts that began in one round trip: %d", n)
		} else if kindOf(r.head.Database) == "postgres" && len(older) < len(r.records) {
			t.Error("no attempt began in one round trip: the test tests nothing of that")
		}
	}
	fmt.Printf("belay chaos: %s, seed %d: %d operations, %d requests, %d faults, %d duplicates, %d lost updates, %d locks lost under a write, %d reported, %d in blind spots, %d false alarms\n",
		r.head.Database, r.head.Seed, operations, requests, len(h.faults), duplicates, lostUpdates, lost, reported, blind, falseAlarms)
	fmt.Printf("%s\n%s\n", rowHead, newRow(r, h, t.violations()))
}

// checkOverlaps counts the locks that were lost and under which somebody wrote: how many of
// these losses were reported, and how many were not for a reason that docs/guarantees.md
// names. A lock that is lost once may overlap with many: its holder was paused, say.
func checkOverlaps(t *report, h *history, overlaps []overlap) (lost, reported, blind int) {
	t.Helper()
	mute := make(map[*grant]blindSpot) // of the locks whose loss was not reported to all
	all := make(map[*grant]bool)
	for _, o := range overlaps {
		g, spot := o.early.grant, h.blindSpot(o)
		all[g] = true
		switch _, known := mute[g]; {
		case o.reported():
			continue
		case spot == nothing:
			t.Errorf("nobody reported that two had %s:\n%s\n%s", o.early.key, o.early, o.late)
		case !known:
			t.Logf("not reported: %q\n%s\n%s", spot, o.early, o.late)
		}
		mute[g] = spot
	}
	spots := make(map[blindSpot]int)
	for _, spot := range mute {
		spots[spot]++
	}
	for spot, n := range spots {
		t.Logf("%d losses not reported: %q", n, spot)
	}
	return len(all), len(all) - len(mute), len(mute) - spots[nothing]
}

// checkCall compares what a call returned with its events and with the faults.
func checkCall(t *report, h *history, c *call, overlaps []overlap) {
	t.Helper()
	if c.first() {
		checkTold(t, c)
	}
	for _, e := range failures(c.events) {
		h.checkCount(t, c, e)
	}
	if h.failedUnexplained(c) {
		t.Errorf("an error that no fault explains:\n%s", c)
	}
	if c.result == stale && c.locked() && !h.broke(c, c.returned) && !h.behind {
		t.Errorf("stale, though it had the lock and brought no version:\n%s", c)
	}
	if c.result == conflict && c.locked() && !slices.ContainsFunc(c.legs, func(leg *call) bool { return h.contended(leg, c.returned, overlaps) }) {
		t.Errorf("a conflict with nobody:\n%s", c)
	}
	if c.result == conflict && c.locked() && !h.broke(c, c.returned) && !h.behind {
		t.Errorf("told of a business conflict, and no task has one:\n%s", c)
	}
}

// checkTold compares the events of a call with its result and its keys.
func checkTold(t *report, c *call) {
	t.Helper()
	told := failures(c.told())
	if n := len(told); n > 1 && (!c.combines || !ofDifferentLocks(told)) {
		t.Errorf("%d events of one call:\n%s", n, c)
	}
	for _, e := range told {
		if !slices.Equal(e.Keys, c.keys()) {
			t.Errorf("an event has the keys %v, the call %v:\n%s", e.Keys, c.keys(), c)
		}
		if !slices.ContainsFunc(c.legs, func(leg *call) bool { return leg.key == e.Key }) {
			t.Errorf("an event names the key %s, which the call did not have:\n%s", e.Key, c)
		}
	}
	if c.lead != nil {
		checkShared(t, c)
		return
	}
	if !c.unpublished && (c.result == unknown) != (c.returned > 0 && slices.ContainsFunc(c.told(), tellsUnknown)) {
		t.Errorf("a commit of unknown outcome is told by the result or by an event only:\n%s", c)
	}
}

func count(faults []fault) map[faultKind]int {
	n := make(map[faultKind]int)
	for _, f := range faults {
		n[f.Kind]++
	}
	return n
}

// ofDifferentLocks reports whether events are about a lock each, as of a leader that ran alone after
// its crew.
func ofDifferentLocks(events []*notify.Event) bool {
	owners := make(map[string]bool)
	for _, e := range events {
		owners[e.Owner] = true
	}
	return len(owners) == len(events)
}

func (c *call) String() string {
	s := fmt.Sprintf("%s, %s on %s: begun %d, wrote %d, ended %d, returned %d %q", c.name, c.kind, c.key, c.begun, c.wrote, c.ended, c.returned, c.result)
	if c.doubtful {
		s += ", a COMMIT without an answer"
	}
	for _, e := range c.events {
		s += fmt.Sprintf(", event %s %s holder %s", e.Verdict, e.Outcome, e.HolderAtConflict)
	}
	if g := c.grant; g != nil {
		s += fmt.Sprintf(", grant %s of %s at %d (%d calls), released %d %q", g.owner, g.node, g.granted, len(g.calls), g.release, g.released)
	}
	return s
}

// TestCalls has calls end in ways that need a reason.
func TestCalls(t *testing.T) {
	const (
		isStale       = "stale, though it had the lock"
		isFailed      = "an error that no fault explains"
		isConflicting = "told of a business conflict"
	)
	const at = int64(time.Minute) // the call, and most faults
	mine, others, before := []fault{{cut, "7 at 0", at + 19, at + 20}}, []fault{{cut, "8 at 0", at + 19, at + 20}}, []fault{{databaseKilled, "", 1, 2}}
	for _, tt := range []struct {
		name, result string
		faults       []fault
		says         string // or nothing
	}{
		{"stale", stale, nil, isStale},
		{"stale, its connection broke", stale, mine, ""},
		{"stale, that of another broke", stale, others, isStale},
		{"deadlock", failed + "Deadlock found", nil, ""},
		{"cut", failed + "invalid connection", mine, ""},
		{"cut by nobody", failed + "invalid connection", nil, isFailed},
		{"cut long ago", failed + "invalid connection", before, isFailed},
		{"refused", failed + "connection refused", mine, isFailed},
		{"refused by a dead database", failed + "connection refused", []fault{{databaseKilled, "", at + 19, at + 20}}, ""},
		{"no connection", failed + "no connection to the database for 2.5s", mine, isFailed},
		{"no connection to a dead database", failed + "no connection to the database for 2.5s", []fault{{databaseKilled, "", at + 19, at + 20}}, ""},
		{"too late", failed + "context deadline exceeded", nil, isFailed},
		{"too late after a pause", failed + "context deadline exceeded", []fault{{pause, "a", at + 10, at + 18}}, ""},
		{"too late after the pause of another", failed + "context deadline exceeded", []fault{{pause, "b", at + 10, at + 18}}, isFailed},
		{"an error of its own", failed + "sold out", mine, isFailed},
		{"a business conflict", conflict, nil, isConflicting},
		{"a business conflict, its connection broke", conflict, mine, "a conflict with nobody"},
		{"a refusal by a group, under the lock", failed + "Plugin instructed the server to rollback", nil, isFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := later(time.Duration(at), story("a.0", "A", 10, 12, 20, 21, "freed"))
			lines[len(lines)-1].Result = tt.result
			h, rep := read(recordsOf(map[string][]line{"a": lines}), tt.faults), &report{}
			checkCall(rep, h, h.calls[0], nil)
			said := strings.Join(rep.failed, "\n")
			if !strings.Contains(said, tt.says) || tt.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}

// TestRefusedByAGroup: what lost its lock may be refused, if it tells of the loss.
func TestRefusedByAGroup(t *testing.T) {
	lost := &notify.Event{Owner: "A", Verdict: notify.VerdictLost}
	for name, events := range map[string][]*notify.Event{"told": {lost}, "not told": nil} {
		lines := story("a.0", "A", 10, 12, 20, 23, "gone", events...)
		lines[len(lines)-1].Result = failed + "Plugin instructed the server to rollback"
		h := read(recordsOf(map[string][]line{"a": lines}), nil)
		if got := h.failedUnexplained(h.calls[0]); got != (name == "not told") {
			t.Errorf("%s: unexplained: %t", name, got)
		}
	}
}

// TestHandedOverAgain: an event that nobody took and that is handed over again is one.
func TestHandedOverAgain(t *testing.T) {
	lost := &notify.Event{ID: "e", Owner: "A", Verdict: notify.VerdictLost}
	lines := story("a.0", "A", 10, 12, 20, 23, "gone", lost, lost)
	h := read(recordsOf(map[string][]line{"a": lines}), nil)
	if n := len(h.calls[0].told()); n != 1 {
		t.Errorf("%d events", n)
	}
}

// TestOfDifferentLocks: two events of one call about one lock are one too many.
func TestOfDifferentLocks(t *testing.T) {
	crew, alone := &notify.Event{Owner: "a:1"}, &notify.Event{Owner: "a:2"}
	if !ofDifferentLocks([]*notify.Event{crew, alone}) || ofDifferentLocks([]*notify.Event{crew, crew}) {
		t.Error("the owners are not compared")
	}
}
