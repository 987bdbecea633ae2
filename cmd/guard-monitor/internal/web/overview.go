package web

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

const (
	shownOpen    = 20
	shownLatest  = 8
	trendMinutes = 120
	// The state of a cluster that was not read for so long is stale.
	staleCluster = 15 * time.Second
)

// overviewData is what the overview shows: whether something is wrong, since when,
// in which services, and why.
type overviewData struct {
	openCounts
	Open     []incident.Incident // the most urgent first
	More     bool                // there are more than Total
	Whose    []string
	Why      []incident.Cause
	LastOver *incident.Incident

	Clusters  []clusterHealth
	Failover  *watch.Entry
	Latest    []store.Received    // the newest first
	Beat      *incident.Heartbeat // the newest
	Services  []serviceHealth
	Keepers   []incident.Keeper // of the services that can switch
	Silent    int
	Dead      int // letters
	DeadKnown bool
	Blind     bool // not everything can be seen

	Counted      bool // events were, in time
	Hour, Before store.Bounded
	Chart        chart
}

// openCounts sums up the open incidents.
type openCounts struct {
	Total    int       `json:"open_incidents"`
	Critical int       `json:"critical"`
	Unacked  int       `json:"unacknowledged"`
	Since    time.Time `json:"since,omitzero"` // of the oldest
}

type serviceHealth struct {
	incident.Heartbeat
	Silent bool             `json:"silent"`           // as the tracker has found: an incident says so
	Keeper *incident.Keeper `json:"switch,omitempty"` // nil: it has one engine, or says nothing
}

type clusterHealth struct {
	watch.Cluster
	Up    int
	Stale bool
}

func (h *Handler) overview(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	return h.findOverview(ctx, time.Now())
}

func (h *Handler) findOverview(ctx context.Context, now time.Time) (*overviewData, error) {
	var d overviewData
	if err := h.findOpen(ctx, &d); err != nil {
		return nil, err
	}
	var err error
	if d.Latest, err = h.cfg.Store.Events(ctx, store.EventFilter{Limit: shownLatest}); err != nil {
		return nil, err
	}
	failovers, err := h.cfg.Store.Timeline(ctx, store.TimelineFilter{Kinds: []watch.Kind{watch.Failover}, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(failovers) > 0 {
		d.Failover = &failovers[0]
	}
	if err := h.findServices(ctx, &d); err != nil {
		return nil, err
	}
	d.Clusters = h.health(now)
	d.Dead, d.DeadKnown = h.cfg.deadLetters()
	in := h.cfg.intake()
	d.Blind = !in.Connected() || !in.Storing ||
		slices.ContainsFunc(d.Clusters, func(c clusterHealth) bool { return c.Stale || c.Up < len(c.Nodes) })
	h.findTrend(ctx, &d)
	return &d, nil
}

// findTrend counts the events. The overview is shown without the counts if they take
// too long.
func (h *Handler) findTrend(ctx context.Context, d *overviewData) {
	c, err := h.trend.get(ctx, func(ctx context.Context) (perStep, error) {
		now := time.Now()
		return h.count(ctx, now.Add(-trendMinutes*time.Minute), now, trendMinutes)
	})
	if err != nil {
		return
	}
	hour := c.counts[trendMinutes/2:]
	d.Counted, d.Hour, d.Before = true, sum(hour), sum(c.counts[:trendMinutes/2])
	d.Chart = bars(hour, nil)
}

// count counts the events of n steps of the same length.
func (h *Handler) count(ctx context.Context, from, to time.Time, n int) (p perStep, err error) {
	p.from, p.to = from, to
	p.counts, err = h.cfg.Store.EventsPer(ctx, from, to.Sub(from)/time.Duration(n), n)
	if err != nil {
		h.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "events not counted", slog.Any("error", err))
	}
	return p, err
}

func (h *Handler) findOpen(ctx context.Context, d *overviewData) error {
	open, err := h.cfg.Store.Incidents(ctx, store.IncidentFilter{Open: true, Limit: store.MaxRows})
	if err != nil {
		return err
	}
	d.Total, d.More = len(open), len(open) == store.MaxRows
	for _, i := range open {
		if i.Severity() == "critical" {
			d.Critical++
		}
		if i.AckedBy == "" {
			d.Unacked++
		}
		if d.Since.IsZero() || i.FirstAt.Before(d.Since) {
			d.Since = i.FirstAt
		}
		if !slices.Contains(d.Whose, i.Service) && len(d.Whose) < 6 {
			d.Whose = append(d.Whose, i.Service)
		}
		if !slices.Contains(d.Why, i.Cause) {
			d.Why = append(d.Why, i.Cause)
		}
	}
	slices.SortStableFunc(open, func(a, b incident.Incident) int { return urgency(b) - urgency(a) })
	d.Open = open[:min(len(open), shownOpen)]
	over, err := h.cfg.Store.Incidents(ctx, store.IncidentFilter{States: []incident.State{incident.Resolved}, Limit: 1})
	if err == nil && len(over) > 0 {
		d.LastOver = &over[0]
	}
	return err
}

// urgency orders open incidents. Those that nobody has acknowledged come first.
func urgency(i incident.Incident) (n int) {
	if i.AckedBy == "" && !i.Silenced() {
		n += 8
	}
	if i.Severity() == "critical" {
		n += 4
	}
	if i.State == incident.Escalating {
		n += 2
	}
	return n
}

func (h *Handler) findServices(ctx context.Context, d *overviewData) error {
	beats, err := h.cfg.Store.Heartbeats(ctx)
	if err != nil {
		return err
	}
	incidents, err := h.cfg.Store.Incidents(ctx, store.IncidentFilter{
		Open: true, Causes: []incident.Cause{incident.HeartbeatSilent}, Limit: store.MaxRows,
	})
	if err != nil {
		return err
	}
	silent := make(map[string]bool, len(incidents))
	for _, i := range incidents {
		silent[i.Service] = true
	}
	d.Silent = len(silent)
	keepers, err := h.findKeepers(ctx, d)
	if err != nil {
		return err
	}
	for i, b := range beats {
		s := serviceHealth{b, silent[b.Service], keepers[b.Service]}
		if len(d.Services) < store.MaxRows {
			d.Services = append(d.Services, s)
		}
		if d.Beat == nil || b.ReceivedAt.After(d.Beat.ReceivedAt) {
			d.Beat = &beats[i]
		}
	}
	return nil
}

// findKeepers finds which engines keep the locks of services that can switch, and returns
// that by service, too.
func (h *Handler) findKeepers(ctx context.Context, d *overviewData) (map[string]*incident.Keeper, error) {
	beats, err := h.cfg.Store.Switching(ctx)
	if err != nil || len(beats) == 0 {
		return nil, err
	}
	switches, err := h.cfg.Store.Switches(ctx, time.Time{})
	if err != nil {
		return nil, err
	}
	all := incident.KeepersOf(beats, switches)
	byService := make(map[string]*incident.Keeper, len(all))
	for i, k := range all {
		byService[k.Service] = &all[i]
	}
	d.Keepers = all[:min(len(all), store.MaxRows)]
	return byService, nil
}

// health returns, for each watched Redis, how many nodes answer, and whether that is
// stale.
func (h *Handler) health(now time.Time) (list []clusterHealth) {
	if h.cfg.Clusters == nil {
		return nil
	}
	for _, c := range h.cfg.Clusters.Clusters() {
		up := 0
		for _, n := range c.Nodes {
			if n.Up {
				up++
			}
		}
		list = append(list, clusterHealth{c, up, now.Sub(c.SeenAt) > staleCluster})
	}
	return list
}
