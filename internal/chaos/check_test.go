package chaos_test

import (
	"fmt"
	"slices"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

// check compares what was promised with what the database and the monitor have.
func check(t *report, r run) {
	t.Helper()
	checkEvents(t, r)
	h := read(r.records, r.faults)
	duplicates, lostUpdates := checkRows(t, r.rows, h)
	overlaps := h.overlaps()
	reported, blind := 0, make(map[string]int)
	for _, o := range overlaps {
		switch reason := o.blindSpot(); {
		case o.reported():
			reported++
		case reason != "":
			if blind[reason]++; blind[reason] == 1 {
				t.Logf("not reported, as %s:\n%s\n%s", reason, o.first, o.second)
			}
		default:
			t.Errorf("nobody reported that two had %s:\n%s\n%s", o.first.key, o.first, o.second)
		}
	}
	blinds := 0
	for reason, n := range blind {
		t.Logf("%d overlaps not reported: %s", n, reason)
		blinds += n
	}
	falseAlarms, lapsed := 0, 0
	for _, c := range h.calls {
		if h.falseAlarm(c, overlaps) {
			falseAlarms++
			t.Errorf("a false alarm:\n%s", c)
		}
		if c.lapsed() {
			lapsed++
		}
		checkCall(t, h, c, overlaps)
	}
	for _, rec := range r.records {
		if n := h.unreported(rec.worker); n != 0 && policyOf(rec.worker) == guard.Refuse && !h.unpublished {
			t.Errorf("%s refused %d operations more than its events say", rec.worker, n)
		}
	}
	results := h.results()
	if lapsed > len(h.calls)/100+1 {
		t.Errorf("%d of %d leases were not renewed in time", lapsed, len(h.calls))
	}
	t.Logf("results: %v, without a lock: %d, not renewed in time: %d", results, len(h.without()), lapsed)
	t.Logf("workloads: %v", h.kinds())
	t.Logf("faults: %v, COMMITs lost by workers: %v, events: %d", count(h.faults), h.losses(), len(r.events))
	if results[done] < len(h.calls)/10 {
		t.Errorf("%d of %d operations were done", results[done], len(h.calls))
	}
	if reported == 0 {
		t.Error("no overlap was provoked and reported: the test tests nothing")
	}
	fmt.Printf("belay chaos: %s, seed %d: %d operations, %d faults, %d duplicates, %d lost updates, %d overlaps, %d reported, %d in blind spots, %d false alarms\n",
		r.head.Database, r.head.Seed, len(h.calls), len(h.faults), duplicates, lostUpdates, len(overlaps)-blinds, reported, blinds, falseAlarms)
}

// checkCall compares what a call returned with its events and with the faults.
func checkCall(t *report, h *history, c *call, overlaps []overlap) {
	t.Helper()
	if n := len(c.alarms()) + c.count(notify.VerdictUnknownCommit); n > 1 {
		t.Errorf("%d events of one call:\n%s", n, c)
	}
	if h.failedUnexplained(c) {
		t.Errorf("an error that no fault explains:\n%s", c)
	}
	if c.result == conflict && c.grant != nil && !h.contended(c, c.returned, overlaps) {
		t.Errorf("a conflict with nobody:\n%s", c)
	}
	if !c.unpublished && (c.result == unknown) != (c.returned > 0 && slices.ContainsFunc(c.events, tellsUnknown)) {
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
