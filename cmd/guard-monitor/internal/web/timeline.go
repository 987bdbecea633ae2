package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

const (
	timelineBars = 120
	timelineRows = 300 // of each kind
)

type timelineData struct {
	From, To time.Time
	Hours    string // of the window that was chosen; empty = another
	Counted  bool   // events were, in time
	Chart    chart
	Rows     []timelineRow
	Limit    int
	Cut      bool
	Step     time.Duration // of a bar
}

// timelineRow is one thing that happened: one of Entry, Incident and Events.
type timelineRow struct {
	At       time.Time
	Entry    *watch.Entry
	Incident *incident.Incident
	Over     bool             // the incident ended
	Events   []store.Received // alike, in a row, the newest first
}

// More is how many events it stands for besides the one that it shows.
func (r timelineRow) More() int { return len(r.Events) - 1 }

func (h *Handler) timeline(ctx context.Context, q *query, _ *http.Request) (any, error) {
	from, to := q.span(time.Now())
	service, key, event, cluster := q.text("service"), q.text("key"), q.text("event"), q.text("cluster")
	if q.err != nil {
		return nil, q.err
	}
	entries, err := h.cfg.Store.Timeline(ctx, store.TimelineFilter{Cluster: cluster, From: from, To: to, Limit: timelineRows})
	if err != nil {
		return nil, err
	}
	events, err := h.cfg.Store.Events(ctx, store.EventFilter{ID: event, Service: service, Key: key, From: from, To: to, Limit: timelineRows})
	if err != nil {
		return nil, err
	}
	incidents, err := h.cfg.Store.Incidents(ctx, store.IncidentFilter{
		Service: service, Key: key, Event: event, Cluster: cluster, From: from, To: to, Limit: timelineRows,
	})
	if err != nil {
		return nil, err
	}
	// Of all services: to count those of one among a million takes too long.
	window := fmt.Sprint(q.values["hours"], q.values["from"], q.values["to"])
	per, err := h.spans.of(window).get(ctx, func(ctx context.Context) (perStep, error) {
		return h.count(ctx, from, to, timelineBars)
	})
	counted := err == nil
	if !counted { // the rows are of use without it
		per = perStep{from: from, to: to}
	}
	d := timelineData{
		From: per.from, To: per.to, Counted: counted, Limit: timelineRows, Chart: bars(per.counts, marks(entries, per.from, per.to)),
		Step: per.to.Sub(per.from) / timelineBars,
		Cut:  max(len(entries), len(events), len(incidents)) == timelineRows,
	}
	if q.values.Get("from") == "" && q.values.Get("to") == "" {
		d.Hours = cmp.Or(q.text("hours"), "6")
	}
	d.Rows = merge(entries, events, incidents)
	return d, nil
}

// marks are the faults of Redis.
func marks(entries []watch.Entry, from, to time.Time) (list []mark) {
	for _, e := range entries {
		m := mark{Class: "fault", Entry: e}
		switch e.Kind {
		case watch.Failover, watch.Restart:
			m.Class = "failover"
		case watch.Down, watch.Split, watch.Eviction, watch.Flush, watch.ClockSet, watch.ClusterDown:
		default:
			continue
		}
		m.X = unit(float64(e.At.Sub(from)) / float64(to.Sub(from)) * chartWidth)
		list = append(list, m)
	}
	return list
}

// merge puts all rows in order, the newest first. Like events in a row become
// one.
func merge(entries []watch.Entry, events []store.Received, incidents []incident.Incident) []timelineRow {
	var rows []timelineRow
	for i := range entries {
		rows = append(rows, timelineRow{At: entries[i].At, Entry: &entries[i]})
	}
	for _, e := range events {
		rows = append(rows, timelineRow{At: e.Event.CaughtAt, Events: []store.Received{e}})
	}
	for i := range incidents {
		rows = append(rows, timelineRow{At: incidents[i].FirstAt, Incident: &incidents[i]})
		if !incidents[i].ResolvedAt.IsZero() {
			rows = append(rows, timelineRow{At: incidents[i].ResolvedAt, Incident: &incidents[i], Over: true})
		}
	}
	slices.SortStableFunc(rows, func(a, b timelineRow) int { return b.At.Compare(a.At) })
	var merged []timelineRow
	for _, r := range rows {
		if last := len(merged) - 1; last >= 0 && alike(merged[last], r) {
			merged[last].Events = append(merged[last].Events, r.Events...)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// alike reports whether two rows are of events that say the same.
func alike(a, b timelineRow) bool {
	if len(a.Events) == 0 || len(b.Events) == 0 {
		return false
	}
	x, y := a.Events[0], b.Events[0]
	return x.Event.Service == y.Event.Service && x.Event.Verdict == y.Event.Verdict && x.Incident == y.Incident
}
