package chaos_test

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/belaygo/belay/notify"
)

// handed is an event that a worker handed over for publishing.
type handed struct {
	event  *notify.Event
	worker string
	result string // of Publish, if it returned
	stored bool   // it returned nil
	at     int64
}

// handedIn returns by their ids the events that workers handed over.
func handedIn(lines map[string][]line) map[string]*handed {
	all := make(map[string]*handed)
	for worker, ls := range lines {
		for _, l := range ls {
			switch l.At {
			case event:
				all[l.Event.ID] = &handed{event: l.Event, worker: worker, at: l.T}
			case stored:
				h := all[l.ID]
				h.result, h.stored = l.Result, l.Result == ""
			}
		}
	}
	return all
}

// storedIn returns the ids of the events of which Publish said that they are safe.
func storedIn(lines map[string][]line) map[string]bool {
	ids := make(map[string]bool)
	for id, h := range handedIn(lines) {
		if h.stored {
			ids[id] = true
		}
	}
	return ids
}

// checkEvents compares what workers handed over with what the monitor has: each event
// once, as it was, and none that nobody handed over. What follows judges only by what
// people get to know: it returns lines without the other events.
func checkEvents(t *report, r run) map[string][]line {
	t.Helper()
	all, known := handedIn(r.lines), make(map[string]bool)
	for _, ev := range r.events {
		h := all[ev.ID]
		switch {
		case known[ev.ID]:
			t.Errorf("the monitor has event %s twice", ev.ID)
		case h == nil:
			t.Errorf("the monitor has an event that nobody reported: %+v", ev)
		case asJSON(ev) != asJSON(*h.event):
			t.Errorf("the monitor has another event than was reported:\n%s\n%s", asJSON(ev), asJSON(*h.event))
		}
		known[ev.ID] = true
	}
	for id, h := range all {
		switch {
		case known[id]:
		case h.stored:
			t.Errorf("the monitor lacks an event that was stored: %s", asJSON(*h.event))
		case h.result != "" && !r.databaseAway(h.at):
			t.Errorf("an event could not be published, though the database was there: %s: %s", h.result, asJSON(*h.event))
		}
	}
	lines := make(map[string][]line)
	for worker, ls := range r.lines {
		lines[worker] = slices.DeleteFunc(slices.Clone(ls), func(l line) bool {
			if l.At == returned && l.ID != "" && !known[l.ID] && (all[l.ID] == nil || all[l.ID].result == "") {
				t.Errorf("an error names an event that the monitor lacks: %+v", l)
			}
			return l.At == event && !known[l.Event.ID]
		})
	}
	return lines
}

// databaseAway reports whether the database was dead within the time that Publish takes.
func (r run) databaseAway(at int64) bool {
	return slices.ContainsFunc(r.faults, func(f fault) bool {
		return f.Kind == databaseKilled && f.From <= at+int64(publishing) && at <= f.To
	})
}

// publishing is how long Publish of an outbox takes at most.
const publishing = 3 * time.Second

func asJSON(ev notify.Event) string {
	text, err := json.Marshal(ev)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
