package store_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

// Each filter, page by page, has all of its events once, by the time when they were caught,
// also of those that arrived late and those that were caught at the same time. Events of a
// clock that is wrong by years come first, as they arrived last.
func TestPagesOfFilteredEvents(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "m.db"))
	var moves []incident.Move
	verdicts := []notify.Verdict{notify.VerdictOverlap, notify.VerdictLost, notify.VerdictUnavailable}
	all := make(map[string]time.Time)
	for n := range 30 {
		ev := event(fmt.Sprint(n))
		ev.Table, ev.Verdict = "orders", verdicts[n%3]
		ev.CaughtAt = caught.Add(time.Duration((n*7)%10) * time.Second) // three at a time
		all[ev.ID] = ev.CaughtAt
		if n%10 == 3 {
			ev.CaughtAt, all[ev.ID] = time.Date(9999-9998*(n%20/10), 1, 2, 0, 0, 0, 0, time.UTC), time.Now()
		}
		add(t, s, ev, nil, true)
		moves = append(moves, incident.Move{Seq: int64(n + 1), Incident: "a"})
	}
	apply(t, s, []incident.Incident{anIncident("a")}, moves...)
	for name, c := range map[string]struct {
		filter store.EventFilter
		want   int
	}{
		"service":       {store.EventFilter{Service: "orders"}, 30},
		"key":           {store.EventFilter{Key: "order:1"}, 30},
		"event":         {store.EventFilter{ID: "7"}, 1},
		"no event":      {store.EventFilter{ID: "none"}, 0},
		"table":         {store.EventFilter{Table: "orders"}, 30},
		"no table":      {store.EventFilter{Table: "none"}, 0},
		"incident":      {store.EventFilter{Incident: "a"}, 30},
		"cause":         {store.EventFilter{Causes: []incident.Cause{incident.Failover}}, 30},
		"another cause": {store.EventFilter{Causes: []incident.Cause{incident.Deleted}}, 0},
		"verdict":       {store.EventFilter{Verdicts: verdicts[:1]}, 10},
		"verdicts":      {store.EventFilter{Verdicts: verdicts[:2]}, 20},
		"time":          {store.EventFilter{From: caught.Add(2 * time.Second), To: caught.Add(5 * time.Second)}, 9},
		"several":       {store.EventFilter{Service: "orders", Key: "order:1", Table: "orders", Verdicts: verdicts[1:2], From: caught.Add(time.Second)}, 9},
	} {
		var got []string
		f := c.filter
		f.Limit = 4
		for {
			page, err := s.Events(t.Context(), f)
			noError(t, err)
			for _, r := range page {
				got = append(got, r.Event.ID)
			}
			if len(page) < f.Limit {
				break
			}
			f.Before = page[len(page)-1].Seq
		}
		if len(got) != c.want || len(slices.Compact(slices.Sorted(slices.Values(got)))) != c.want {
			t.Errorf("%s: %d events, want %d, each once: %v", name, len(got), c.want, got)
		}
		if !slices.IsSortedFunc(got, func(a, b string) int { return all[b].Compare(all[a]) }) {
			t.Errorf("%s: %v are not in the order of time", name, got)
		}
		if n, more, err := s.CountEvents(t.Context(), c.filter); err != nil || n != c.want || more {
			t.Errorf("%s: counted %d, %v, %v; want %d", name, n, more, err, c.want)
		}
	}
}
