package chaos_test

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/belaygo/belay/notify"
)

// handedIn returns by their ids the events that workers handed over.
func handedIn(records []*record) map[string]*handed {
	all := make(map[string]*handed)
	for _, r := range records {
		for _, e := range r.handed {
			if other := all[e.event.ID]; other == nil || !other.stored { // several may report one undecided call
				all[e.event.ID] = e
			}
		}
	}
	return all
}

// checkEvents compares what workers handed over with what the monitor has: each event
// once, as it was, and none that nobody handed over. What the monitor lacks it marks as
// missing: the oracle judges by what people get to know.
func checkEvents(t *report, r run) {
	t.Helper()
	all, known := handedIn(r.records), make(map[string]bool)
	for _, ev := range r.events {
		e := all[ev.ID]
		switch {
		case known[ev.ID]:
			t.Errorf("the monitor has event %s twice", ev.ID)
		case e == nil:
			t.Errorf("the monitor has an event that nobody reported: %s", asJSON(ev))
		case asJSON(ev) != asJSON(*e.event) && !r.handed(ev):
			t.Errorf("the monitor has another event than was reported:\n%s\n%s", asJSON(ev), asJSON(*e.event))
		}
		known[ev.ID] = true
	}
	for id, e := range all {
		e.missing = !known[id]
		switch {
		case !e.missing:
		case e.stored:
			t.Errorf("the monitor lacks an event that was stored: %s", asJSON(*e.event))
		case e.result != "" && !r.mayLose(e.last):
			t.Errorf("an event got lost though the database or the broker was there: %s: %s", e.result, asJSON(*e.event))
		}
	}
	for _, rec := range r.records {
		for _, c := range rec.calls {
			if e := all[c.named]; c.named != "" && (e == nil || e.missing && e.result == "") {
				t.Errorf("an error names event %s, which the monitor lacks:\n%s", c.named, c)
			}
		}
	}
}

// handed reports whether a worker has handed over an event just so that is one for all who report it.
func (r run) handed(ev notify.Event) bool {
	return ev.Verdict == notify.VerdictUndecided && slices.ContainsFunc(r.records, func(rec *record) bool {
		return slices.ContainsFunc(rec.handed, func(e *handed) bool { return asJSON(*e.event) == asJSON(ev) })
	})
}

// mayLose reports whether an event may be lost that was handed over then: faults kept the
// database from storing it and the broker from taking it instead.
func (r run) mayLose(at int64) bool {
	met := func(after time.Duration, is func(faultKind) bool) bool {
		return slices.ContainsFunc(r.faults, func(f fault) bool {
			return is(f.Kind) && f.From <= at+int64(publishing) && at <= f.To+int64(after)
		})
	}
	return met(0, func(k faultKind) bool { return k == cut || k == databaseKilled || k.ofBed() }) &&
		met(reconnecting, func(k faultKind) bool { return k == linkCut || k == linkAway || k == linkMute })
}

const (
	publishing   = 3 * time.Second // Publish of an outbox takes no longer
	reconnecting = 3 * time.Second // until a publisher has found its broker again
)

func asJSON(ev notify.Event) string {
	text, err := json.Marshal(ev)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
