package chaos_test

import (
	"fmt"
	"slices"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

// check compares what was promised with what the database has and what was
// reported.
func check(t *report, r run) {
	t.Helper()
	h := read(r.lines, r.faults)
	duplicates := checkOrders(t, r.rows.Orders, h)
	lostUpdates := checkCounters(t, r.rows.Counters, h)
	overlaps := h.overlaps()
	reported, blind := 0, make(map[string]int)
	for _, o := range overlaps {
		switch reason := o.blindSpot(); {
		case o.reported():
			reported++
		case reason != "":
			blind[reason]++
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
		if n := len(c.alarms()) + c.count(notify.VerdictUnknownCommit); n > 1 {
			t.Errorf("%d events of one call:\n%s", n, c)
		}
		if c.failedUnexplained() {
			t.Errorf("an error that no fault explains:\n%s", c)
		}
		if (c.result == unknown) != (c.returned > 0 && slices.ContainsFunc(c.events, tellsUnknown)) {
			t.Errorf("a commit of unknown outcome is told by the result or by an event only:\n%s", c)
		}
	}
	for worker := range r.lines {
		if n := h.unreported(worker); n != 0 && policyOf(worker) == guard.Refuse {
			t.Errorf("%s refused %d operations more than its events say", worker, n)
		}
	}
	results := h.results()
	if lapsed > len(h.calls)/100+1 {
		t.Errorf("%d of %d leases were not renewed in time", lapsed, len(h.calls))
	}
	t.Logf("results: %v, without a lock: %d, not renewed in time: %d", results, len(h.without()), lapsed)
	t.Logf("faults: %v, COMMITs lost by workers: %d", count(h.faults), h.lost())
	if results[done] < len(h.calls)/10 {
		t.Errorf("%d of %d operations were done", results[done], len(h.calls))
	}
	if reported == 0 {
		t.Error("no overlap was provoked and reported: the test tests nothing")
	}
	fmt.Printf("belay chaos: %d operations, %d faults, %d duplicates, %d lost updates, %d overlaps, %d reported, %d in blind spots, %d false alarms\n",
		len(h.calls), len(h.faults), duplicates, lostUpdates, len(overlaps)-blinds, reported, blinds, falseAlarms)
}

func count(faults []fault) map[faultKind]int {
	n := make(map[faultKind]int)
	for _, f := range faults {
		n[f.Kind]++
	}
	return n
}

// checkOrders returns how many rows should not be there.
func checkOrders(t *report, rows []Order, h *history) (duplicates int) {
	t.Helper()
	by := make(map[string]string)
	for _, r := range rows {
		if _, twice := by[r.No]; twice {
			duplicates++
			t.Errorf("order %s is there twice", r.No)
		}
		by[r.No] = r.By
	}
	for _, c := range h.calls {
		var no string
		if _, err := fmt.Sscanf(c.key, "order:%s", &no); err != nil {
			continue
		}
		mine := by[no] == c.name
		switch {
		case c.result == done && !mine:
			t.Errorf("the row of an insert that was done is not there, but one of %q:\n%s", by[no], c)
		case mine && c.result != done && c.result != unknown && c.returned > 0:
			t.Errorf("the row of an insert that was not done is there:\n%s", c)
		}
	}
	return duplicates
}

// checkCounters returns how many updates are missing.
func checkCounters(t *report, rows []Counter, h *history) (missing int64) {
	t.Helper()
	for _, r := range rows {
		told, open := h.told(counterKey(r.ID), done), h.open(counterKey(r.ID))
		if r.N < told || r.N > told+open {
			t.Errorf("counter %d is %d after %d updates that were done and %d that may have been", r.ID, r.N, told, open)
			missing += max(0, told-r.N)
		}
		if int64(r.Version) != r.N+1 {
			t.Errorf("counter %d is %d at version %d", r.ID, r.N, r.Version)
		}
	}
	return missing
}

func (c *call) String() string {
	s := fmt.Sprintf("%s on %s: begun %d, wrote %d, ended %d, returned %d %q", c.name, c.key, c.begun, c.wrote, c.ended, c.returned, c.result)
	for _, e := range c.events {
		s += fmt.Sprintf(", event %s %s holder %s", e.Verdict, e.Outcome, e.HolderAtConflict)
	}
	if g := c.grant; g != nil {
		s += fmt.Sprintf(", grant %s of %s at %d (%d calls), released %d %q", g.owner, g.node, g.granted, len(g.calls), g.release, g.released)
	}
	return s
}
