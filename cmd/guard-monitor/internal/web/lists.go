package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

const pageRows = 50

// countTimeout is what a count at the head of a list may take.
const countTimeout = time.Second

// total is how many rows a filter chooses, as of a moment ago; empty if they
// cannot be counted in time, since the list is of use without it.
func (h *Handler) total(ctx context.Context, filter any, count func(context.Context) (int, bool, error)) string {
	name := fmt.Sprintf("%T %+v", filter, filter)
	text, _ := h.counted.of(name).get(ctx, func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		n, more, err := count(ctx)
		if err != nil {
			return "", nil
		}
		return counted(n, more), nil
	})
	return text
}

type incidentsData struct {
	Show  string
	List  []incident.Incident
	Into  map[string]*incident.Incident // those that others of List were merged into, by ID
	Count string
	Older string // where the next page begins; empty = there is none
}

// AnyOpen reports whether one of the incidents is open.
func (d incidentsData) AnyOpen() bool {
	return slices.ContainsFunc(d.List, func(i incident.Incident) bool { return i.State.Open() })
}

func (h *Handler) incidents(ctx context.Context, q *query, _ *http.Request) (any, error) {
	f := q.incidents()
	d := incidentsData{Show: q.show()}
	if q.err != nil {
		return nil, q.err
	}
	f.Limit = pageRows + 1
	var err error
	if d.List, err = h.cfg.Store.Incidents(ctx, f); err != nil {
		return nil, err
	}
	if len(d.List) > pageRows {
		d.List = d.List[:pageRows]
		d.Older = d.List[pageRows-1].ID
	}
	if d.Into, err = h.into(ctx, d.List...); err != nil {
		return nil, err
	}
	f.Before, f.Limit = "", 0
	d.Count = h.total(ctx, f, func(ctx context.Context) (int, bool, error) { return h.cfg.Store.CountIncidents(ctx, f) })
	return d, nil
}

// into returns the incidents that others of a list were merged into, by ID. One that is no
// longer stored is absent.
func (h *Handler) into(ctx context.Context, list ...incident.Incident) (map[string]*incident.Incident, error) {
	var ids []string
	for _, i := range list {
		if i.MergedInto != "" {
			ids = append(ids, i.MergedInto)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := h.cfg.Store.Incidents(ctx, store.IncidentFilter{IDs: ids, Limit: len(ids)})
	byID := make(map[string]*incident.Incident, len(found))
	for n := range found {
		byID[found[n].ID] = &found[n]
	}
	return byID, err
}

type incidentData struct {
	incident.Incident
	Into    map[string]*incident.Incident // the one that it was merged into, by ID
	Latest  []store.Received
	Told    []store.Notification
	Settled []incident.Settlement
	Done    []store.AuditLine // what people did
	From    string            // where its timeline begins
	To      string
}

const shownTold = 20

// SilencedAlone reports whether a silence holds for the incident alone.
func (d incidentData) SilencedAlone() bool {
	return slices.ContainsFunc(d.Silences, func(s incident.Silence) bool { return own(s, d.ID) })
}

func (h *Handler) incident(ctx context.Context, _ *query, r *http.Request) (any, error) {
	i, err := h.cfg.Store.Incident(ctx, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d := incidentData{Incident: i}
	if d.Into, err = h.into(ctx, i); err != nil {
		return nil, err
	}
	if d.Latest, err = h.cfg.Store.Events(ctx, store.EventFilter{Incident: i.ID, Limit: shownLatest}); err != nil {
		return nil, err
	}
	if d.Told, err = h.cfg.Store.Notifications(ctx, i.ID, shownTold); err != nil {
		return nil, err
	}
	if d.Done, err = h.cfg.Store.AuditOf(ctx, i.ID, shownTold); err != nil {
		return nil, err
	}
	if d.Settled, err = h.cfg.Store.Settlements(ctx, i.ID, shownTold); err != nil {
		return nil, err
	}
	const stamp = "2006-01-02T15:04:05Z"
	d.From, d.To = i.FirstAt.Add(-10*time.Minute).UTC().Format(stamp), i.LastAt.Add(10*time.Minute).UTC().Format(stamp)
	return d, nil
}

type eventsData struct {
	List  []store.Received
	Count string
	Older int64
}

func (h *Handler) events(ctx context.Context, q *query, _ *http.Request) (any, error) {
	f := q.events()
	if q.err != nil {
		return nil, q.err
	}
	var d eventsData
	var err error
	f.Limit = pageRows + 1
	if d.List, err = h.cfg.Store.Events(ctx, f); err != nil {
		return nil, err
	}
	if len(d.List) > pageRows {
		d.List = d.List[:pageRows]
		d.Older = d.List[pageRows-1].Seq
	}
	f.Before, f.Limit = 0, 0
	d.Count = h.total(ctx, f, func(ctx context.Context) (int, bool, error) { return h.cfg.Store.CountEvents(ctx, f) })
	return d, nil
}

type eventData struct {
	store.Received
	Raw  string
	Says string // in words
}

func (h *Handler) event(ctx context.Context, _ *query, r *http.Request) (any, error) {
	ev, raw, err := h.cfg.Store.Event(ctx, eventID(r))
	if err != nil {
		return nil, err
	}
	return eventData{ev, text.Lines(raw), text.Line(text.Clip(langOf(r).Event(ev.Event), maxDescription))}, nil
}

// maxDescription bounds the sentence about an event, in bytes.
const maxDescription = 2 << 10

type clustersData struct {
	List []clusterPage
}

type clusterPage struct {
	clusterHealth
	Shards []shardStrip
	Others []watch.Node // in no shard
	Past   []watch.Entry
}

type shardStrip struct {
	watch.Shard
	Master   *watch.Node
	Replicas []watch.Node
	Last     *watch.Entry // the last failover
}

const shownPast = 15

func (h *Handler) clusters(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	var d clustersData
	for _, c := range h.health(time.Now()) {
		past, err := h.cfg.Store.Timeline(ctx, store.TimelineFilter{Cluster: c.Name, Limit: shownPast})
		if err != nil {
			return nil, err
		}
		p := clusterPage{clusterHealth: c, Past: past}
		p.strips()
		d.List = append(d.List, p)
	}
	return d, nil
}

// strips puts the nodes where they belong.
func (p *clusterPage) strips() {
	placed := make(map[string]bool)
	for _, s := range p.Cluster.Shards {
		strip := shardStrip{Shard: s}
		for _, n := range p.Nodes {
			switch {
			case n.Addr == s.Master:
				strip.Master = &n
			case n.Role == "replica" && n.Master == s.Master:
				strip.Replicas = append(strip.Replicas, n)
			default:
				continue
			}
			placed[n.Addr] = true
		}
		for i, e := range p.Past {
			if e.Kind == watch.Failover && e.Shard == s.Name {
				strip.Last = &p.Past[i]
				break
			}
		}
		p.Shards = append(p.Shards, strip)
	}
	for _, n := range p.Nodes {
		if !placed[n.Addr] {
			p.Others = append(p.Others, n)
		}
	}
}
