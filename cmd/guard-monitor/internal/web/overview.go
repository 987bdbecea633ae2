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
	shownOpen   = 20
	shownAlike  = 5 // of the cards of one cause
	shownLatest = 8
	// shownServices is how many services the overview lists; GET services has all.
	shownServices = 1000
	trendMinutes  = 120
	// The state of a cluster that was not read for so long is stale.
	staleCluster = 15 * time.Second
)

// overviewData is what the overview shows: whether something is wrong, since when,
// in which services, and why.
type overviewData struct {
	openCounts
	Open     []incident.Incident // the most urgent first
	Cards    []incident.Incident // as Open, but not too many of one cause
	Alike    []sameCause         // the causes of many incidents, as in Why
	Whose    []string
	Why      []incident.Cause
	LastOver *incident.Incident

	Clusters  []clusterHealth
	Failover  *watch.Entry
	Latest    []store.Received    // the newest first
	Beat      *incident.Heartbeat // the newest
	Services  []serviceHealth     // in order of name
	Known     int                 // services
	Keepers   []incident.Keeper   // of the services that can switch
	Sent      []sentMessages      // the worst first
	Tables    int                 // of messages
	Calls     []openCalls         // the worst first
	CallsIn   int                 // tables of calls
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
	d.Known = len(d.Services)
	d.Services, d.Keepers = d.Services[:min(d.Known, shownServices)], d.Keepers[:min(len(d.Keepers), shownServices)]
	if err := h.findMessages(ctx, &d, now); err != nil {
		return nil, err
	}
	if err := h.findCalls(ctx, &d, now); err != nil {
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
	now, err := h.cfg.Store.Current(ctx)
	if err != nil {
		return err
	}
	var open []*incident.Incident
	for _, i := range now.Incidents {
		if i.State.Open() {
			open = append(open, i)
			d.add(i)
		}
	}
	slices.SortStableFunc(open, func(a, b *incident.Incident) int { return urgency(b) - urgency(a) })
	for _, i := range open[:min(len(open), shownOpen)] {
		d.Open = append(d.Open, *i)
	}
	d.gather(open)
	over, err := h.cfg.Store.Incidents(ctx, store.IncidentFilter{States: []incident.State{incident.Resolved}, Limit: 1})
	if err == nil && len(over) > 0 {
		d.LastOver = &over[0]
	}
	return err
}

// shownWhose is how many services are named that have open incidents.
const shownWhose = 6

// sameCause sums up the open incidents of one cause.
type sameCause struct {
	Cause               incident.Cause
	Incidents, Services int
	Critical, Unacked   int
	services            map[string]bool
}

// gather fills in Alike and Cards from the open incidents in the order of urgency.
func (d *overviewData) gather(open []*incident.Incident) {
	all := make(map[incident.Cause]*sameCause)
	for _, i := range open {
		a := all[i.Cause]
		if a == nil {
			a = &sameCause{Cause: i.Cause, services: make(map[string]bool)}
			all[i.Cause] = a
		}
		a.add(i)
		if a.Incidents <= shownAlike && len(d.Cards) < shownOpen {
			d.Cards = append(d.Cards, *i)
		}
	}
	for _, cause := range d.Why {
		if a := all[cause]; a.Incidents > shownAlike {
			d.Alike = append(d.Alike, *a)
		}
	}
}

func (a *sameCause) add(i *incident.Incident) {
	a.Incidents++
	a.services[i.Service] = true
	a.Services = len(a.services)
	if i.Severity() == "critical" {
		a.Critical++
	}
	if i.AckedBy == "" {
		a.Unacked++
	}
}

// add counts an open incident.
func (d *overviewData) add(i *incident.Incident) {
	d.Total++
	if i.Severity() == "critical" {
		d.Critical++
	}
	if i.AckedBy == "" {
		d.Unacked++
	}
	if d.Since.IsZero() || i.FirstAt.Before(d.Since) {
		d.Since = i.FirstAt
	}
	if len(d.Whose) < shownWhose && !slices.Contains(d.Whose, i.Service) {
		d.Whose = append(d.Whose, i.Service)
	}
	if !slices.Contains(d.Why, i.Cause) {
		d.Why = append(d.Why, i.Cause)
	}
}

// urgency orders open incidents. Those that nobody has acknowledged come first.
func urgency(i *incident.Incident) (n int) {
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
	now, err := h.cfg.Store.Current(ctx)
	if err != nil {
		return err
	}
	silent := make(map[string]bool)
	for _, i := range now.Incidents {
		if i.Cause == incident.HeartbeatSilent && i.State.Open() {
			silent[i.Service] = true
		}
	}
	d.Silent = len(silent)
	keepers, err := h.findKeepers(ctx, d)
	if err != nil {
		return err
	}
	for i, b := range beats {
		d.Services = append(d.Services, serviceHealth{b, silent[b.Service], keepers[b.Service]})
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
	d.Keepers = all
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
