package incident

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/notify"
)

// desk is what the Tracker has at hand while it works on some events: the
// incidents that it changes, written at the end, and the timelines and other
// events that it has read.
type desk struct {
	*Tracker
	now       time.Time
	incidents map[string]*Incident // by ID
	latest    map[string]*Incident // by grouping key; nil = there is none
	changed   map[string]bool      // by ID
	moves     []Move
	timelines map[string]timeline // by cluster
	writers   map[related][]notify.Event
	degraded  map[related][]notify.Event
	counted   []Messages           // nil: not read yet
	calls     []Messages           // what counts of the calls; nil: not read yet
	staying   map[string]explained // by incident: the best explained event that is not moved
}

// related are the events that have a key or a service in common, of a time in
// whole minutes: many explanations need the same.
type related struct {
	name     string
	from, to int64 // Unix minutes
}

type timeline struct {
	from    time.Time // as requested
	since   time.Time // since when the entries are all: later if there were too many
	entries []watch.Entry
}

func (t *Tracker) desk(now time.Time) *desk {
	return &desk{
		Tracker: t, now: now,
		incidents: make(map[string]*Incident), latest: make(map[string]*Incident),
		changed: make(map[string]bool), timelines: make(map[string]timeline),
		writers: make(map[related][]notify.Event), degraded: make(map[related][]notify.Event),
		staying: make(map[string]explained),
	}
}

// maxMoves bounds the events that are moved at once, so that new ones never wait
// for long.
const maxMoves = 1000

// save writes what has changed: the incidents before the events that come into
// them. Events that it does not get to are where they were.
func (d *desk) save(ctx context.Context) error {
	var saved []Incident
	for id := range d.changed {
		i := d.incidents[id]
		i.UpdatedAt = d.now
		saved = append(saved, *i)
	}
	if len(saved)+len(d.moves) == 0 {
		return nil
	}
	slices.SortFunc(saved, func(a, b Incident) int { return a.FirstAt.Compare(b.FirstAt) })
	for {
		n := min(len(d.moves), maxMoves)
		fail.Point("incident/before-save")
		if err := d.cfg.Store.Apply(ctx, saved, d.moves[:n]); err != nil {
			return err
		}
		fail.Point("incident/saved")
		if saved, d.moves = nil, d.moves[n:]; len(d.moves) == 0 {
			return nil
		}
	}
}

// explained is an event with its explanation and the key of its group.
type explained struct {
	Received
	Explanation
	key            string
	cluster, shard string
}

// explain gathers the facts on an event and explains it by them.
func (d *desk) explain(ctx context.Context, r Received) (explained, error) {
	f := Facts{Behind: d.clocks.behind(r.Event)}
	f.Event, f.Says = believed(d.clocks.correct(r.Event), r.At)
	at, watched := d.locate(r.Event.Place)
	f.Watched, f.Cluster, f.SeenAt = watched, at.Cluster, at.SeenAt
	x := explained{Received: r, cluster: at.Cluster, shard: at.Shard}
	from, to := reach(f.Event)
	var err error
	if f.Watched {
		t, err := d.timeline(ctx, f.Cluster, from)
		if err != nil {
			return x, err
		}
		f.Timeline, f.From = t.entries, from
		if t.since.After(from) {
			f.From = t.since
		}
	}
	if f.Others, err = d.others(ctx, r.Event, from, to); err != nil {
		return x, err
	}
	x.Explanation = Explain(f)
	if x.Elsewhere != (notify.Place{}) {
		at, _ = d.locate(x.Elsewhere)
		x.shard = at.Shard
	}
	switch {
	case x.Cause.ofDatabase():
		x.cluster, x.shard = "", ""
	case x.Everywhere, slices.Contains(ofCallers, x.Cause):
		x.shard = ""
	}
	x.key = GroupKey(r.Event.Service, x.Cause, x.cluster, x.shard)
	return x, nil
}

// ofCallers are the causes that lie with those who need locks, wherever these are kept.
var ofCallers = []Cause{Overrun, Bypass, DegradedPeer, Unreachable}

// locate returns where a lock is kept, if a watched Redis keeps it.
func (t *Tracker) locate(p notify.Place) (watch.Location, bool) {
	if t.cfg.Locator == nil {
		return watch.Location{}, false
	}
	at, watched := t.cfg.Locator.Locate(p)
	if !watched {
		return watch.Location{}, false
	}
	return at, true
}

// unexplained is explain for an event whose explanation fails.
func (d *desk) unexplained(_ context.Context, r Received) (explained, error) {
	x := explained{Received: r, Explanation: notJudged(d.now)}
	x.key = GroupKey(r.Event.Service, Unknown, "", "")
	return x, nil
}

// longOutage bounds how long before an event that is about an outage its begin is
// looked for.
const longOutage = 6 * time.Hour

// reach is the time whose facts can bear on an event.
func reach(ev notify.Event) (from, to time.Time) {
	from, to = held(ev).from.Add(-ev.TTL).Add(-2*degradedFor), ev.CaughtAt.Add(time.Minute)
	if earliest := ev.CaughtAt.Add(-lookBack); from.Before(earliest) {
		from = earliest
	}
	if ev.Verdict == notify.VerdictDegraded || ev.Verdict == notify.VerdictUnavailable {
		from = ev.CaughtAt.Add(-longOutage)
	}
	return from, to
}

// timeline reads what happened to a cluster, once for many events. A read that
// goes further back than requested does no harm.
func (d *desk) timeline(ctx context.Context, cluster string, from time.Time) (timeline, error) {
	have, ok := d.timelines[cluster]
	if ok && !from.Before(have.from) {
		return have, nil
	}
	from = from.Add(-lookBack)
	entries, since, err := d.cfg.Store.TimelineSince(ctx, cluster, from)
	if err != nil {
		return timeline{}, err
	}
	d.timelines[cluster] = timeline{from, since, entries}
	return d.timelines[cluster], nil
}

// others reads the events that may explain one on whose key another caller wrote;
// the rest need none.
func (d *desk) others(ctx context.Context, ev notify.Event, from, to time.Time) ([]notify.Event, error) {
	if !intrudedUpon(ev) {
		return nil, nil
	}
	wide := d.clocks.widest()
	from, to = from.Add(-wide), to.Add(wide)
	same, err := d.relate(ctx, d.writers, d.cfg.Store.Writers, ev.Key, from, to)
	degraded, err2 := d.relate(ctx, d.degraded, d.cfg.Store.DegradedEvents, ev.Service, from, to)
	return slices.Concat(same, degraded), errors.Join(err, err2)
}

// relate reads related events once, with their times as they are by this host's clock.
func (d *desk) relate(ctx context.Context, have map[related][]notify.Event,
	read func(ctx context.Context, name string, from, to time.Time) ([]Received, error), name string, from, to time.Time,
) ([]notify.Event, error) {
	key := related{name, from.Unix() / 60, to.Unix()/60 + 1}
	if list, ok := have[key]; ok {
		return list, nil
	}
	received, err := read(ctx, name, time.Unix(key.from*60, 0), time.Unix(key.to*60, 0))
	if err != nil {
		return nil, err
	}
	list := make([]notify.Event, len(received))
	for i, r := range received {
		list[i], _ = believed(d.clocks.correct(r.Event), r.At)
	}
	have[key] = list
	return list, nil
}

// incident returns an incident by its ID.
func (d *desk) incident(ctx context.Context, id string) (*Incident, error) {
	if i, ok := d.incidents[id]; ok {
		return i, nil
	}
	i, err := d.cfg.Store.Incident(ctx, id)
	if err != nil {
		return nil, err
	}
	d.incidents[id] = &i
	return &i, nil
}

// last returns the newest incident of a grouping key, or nil.
func (d *desk) last(ctx context.Context, key string) (*Incident, error) {
	if i, ok := d.latest[key]; ok {
		return i, nil
	}
	read, err := d.cfg.Store.LastIncident(ctx, key)
	if errors.Is(err, ErrNotFound) {
		d.latest[key] = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	i := &read
	if have, ok := d.incidents[read.ID]; ok { // it may have another key by now
		if i = have; i.Key != key {
			i = nil
		}
	} else {
		d.incidents[read.ID] = i
	}
	d.latest[key] = i
	return i, nil
}

// place puts an event into the incident of its group, which it begins or
// reopens if need be.
func (d *desk) place(ctx context.Context, x explained) (*Incident, error) {
	i, err := d.last(ctx, x.key)
	if err != nil {
		return nil, err
	}
	switch {
	case i == nil, !i.State.Open() && d.now.Sub(i.ResolvedAt) > regress:
		i = d.begin(x.Event.Service, x.Cause, x.key, CaughtAt(x.Event, x.At))
		i.locate(x)
	case !i.State.Open():
		d.reopen(i)
	}
	i.believe(x.Explanation, x.Event.ID)
	i.SeenAt = d.now
	d.changed[i.ID] = true
	d.moves = append(d.moves, Move{Seq: x.Seq, Incident: i.ID})
	return i, nil
}

// locate says where an incident is, as its first event does.
func (i *Incident) locate(x explained) {
	i.Cluster, i.Shard, i.Place = x.cluster, x.shard, x.Event.Place
	switch {
	case x.Cause.ofDatabase():
		i.Place = notify.Place{Slot: -1}
	case x.Elsewhere != (notify.Place{}):
		i.Place = x.Elsewhere
	}
}

// regress is how long after its end an incident can come back as the same.
const regress = 7 * 24 * time.Hour

func (d *desk) begin(service string, cause Cause, key string, at time.Time) *Incident {
	i := &Incident{
		ID: uuid.Must(uuid.NewV7()).String(), Key: key, Service: service, Cause: cause, State: New, DocLink: DocLink(cause),
		FirstAt: at, LastAt: at, SeenAt: d.now, OpenedAt: d.now,
	}
	i.Place.Slot = -1
	d.incidents[i.ID], d.latest[key], d.changed[i.ID] = i, i, true
	return i
}

func (d *desk) reopen(i *Incident) {
	i.State, i.OpenedAt, i.ResolvedAt, i.Rate = Regressed, d.now, time.Time{}, Rate{}
	i.Regressed++
	i.Confidence = "" // what explained it then need not explain it now
	i.Evidence, _ = mentions(i.Evidence)
	d.changed[i.ID] = true
}

func (d *desk) resolve(i *Incident) {
	i.State, i.ResolvedAt = Resolved, d.now
	d.changed[i.ID] = true
}
