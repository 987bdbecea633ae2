package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/notify"
)

// Bounds of what is kept of one event. Longer text is cut, a larger count is
// lowered: an event that is too large is still an event.
const (
	MaxText  = 512           // bytes of a column; a valid lock key fits
	MaxBody  = 64 << 10      // bytes of the JSON body
	MaxCount = math.MaxInt32 // so that no sum of counts overflows
)

// MaxRecent bounds the events that one call of Recent returns.
const MaxRecent = MaxRows

// Received is an event as the store has it.
type Received = incident.Received

// Count sums up the events of one verdict.
type Count struct {
	Events   int64
	Failures int64 // sum of the events' counts
}

// EventFilter chooses events. Zero fields choose all.
type EventFilter struct {
	ID       string // of the event
	Service  string
	Key      string // one that the operation held
	Table    string
	Incident string // ID
	Verdicts []notify.Verdict
	Causes   []incident.Cause
	From, To time.Time // when they were caught: From ≤ CaughtAt < To
	Before   int64     // those after the event with this Seq: the last of the page before
	Limit    int       // default DefaultRows, at most MaxRows

	rare bool // the incidents of Causes have few events
}

// all reports whether the filter chooses all events.
func (f EventFilter) all() bool {
	return f.ID+f.Service+f.Key+f.Table+f.Incident == "" && len(f.Verdicts)+len(f.Causes) == 0 && f.From.IsZero() && f.To.IsZero()
}

// where has the condition first by which few rows are found. The plus keeps the others from
// being used for that.
func (f EventFilter) where() where {
	var w where
	by := func(column string) string {
		if len(w.conds) > 0 {
			return "+" + column
		}
		return column
	}
	w.text("event_id = ?", f.ID)
	w.text(by("incident_id")+" = ?", f.Incident)
	if f.Key != "" {
		key := text.Clip(f.Key, MaxText)
		w.add("("+by("key")+" = ? OR "+by("seq")+" IN (SELECT seq FROM event_keys WHERE key = ?))", key, key)
	}
	if f.Table != "" {
		w.add(by("table_name")+" = ? AND table_name <> ''", f.Table)
	}
	w.text(by("service")+" = ?", f.Service)
	in(&w, by("verdict"), f.Verdicts)
	if len(f.Causes) > 0 {
		var causes where
		in(&causes, "cause", f.Causes)
		column := by("incident_id")
		if !f.rare {
			column = "+incident_id"
		}
		w.add(column+" IN (SELECT id FROM incidents"+causes.String()+")", causes.args...)
	}
	w.time("caught_at >= ?", f.From)
	w.time("caught_at < ?", f.To)
	return w
}

const eventColumns = `seq, coalesce(incident_id, ''), event_id, received_at, caught_at, service, instance,
	verdict, outcome, key, table_name, node, slot, count, sender, body`

// byCaught is the order of the indexes by which events are found.
const byCaught = ` ORDER BY caught_at DESC, seq DESC LIMIT ?`

// Events returns events: those that a filter chooses by the time when they were caught, and
// otherwise in the order of arrival, the newest first.
func (s *Store) Events(ctx context.Context, f EventFilter) ([]Received, error) {
	if f.all() {
		var w where
		if f.Before > 0 {
			w.add("seq < ?", f.Before)
		}
		return s.events(ctx, w.String()+` ORDER BY seq DESC LIMIT ?`, append(w.args, limit(f.Limit))...)
	}
	if len(f.Verdicts) > 1 {
		return s.eventsOfEach(ctx, f)
	}
	if err := s.weigh(ctx, &f); err != nil {
		return nil, err
	}
	w := f.where()
	if f.Before > 0 {
		w.add("(caught_at, seq) < (SELECT caught_at, seq FROM events WHERE seq = ?)", f.Before)
	}
	return s.events(ctx, w.String()+byCaught, append(w.args, limit(f.Limit))...)
}

const (
	rareIncidents = 1000
	rareEvents    = 10_000
)

// weigh finds whether the causes of a filter are rare. Their events are then found by
// incident, and sorted. Otherwise one comes soon in the order of all events.
func (s *Store) weigh(ctx context.Context, f *EventFilter) error {
	if len(f.Causes) == 0 {
		return nil
	}
	var w where
	in(&w, "cause", f.Causes)
	var incidents, events int64
	err := s.read.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(events), 0) FROM (SELECT events FROM incidents`+w.String()+` LIMIT ?)`,
		append(w.args, rareIncidents)...).Scan(&incidents, &events)
	if err != nil {
		return fmt.Errorf("count incidents: %w", err)
	}
	f.rare = incidents < rareIncidents && events < rareEvents
	return nil
}

// eventsOfEach returns the events of several verdicts. For one verdict an index has the order.
func (s *Store) eventsOfEach(ctx context.Context, f EventFilter) (list []Received, err error) {
	one := f
	for _, v := range f.Verdicts {
		one.Verdicts = []notify.Verdict{v}
		events, err := s.Events(ctx, one)
		if err != nil {
			return nil, err
		}
		list = append(list, events...)
	}
	at := func(r Received) int64 { return incident.CaughtAt(r.Event, r.At).UnixMicro() } // as it is stored
	slices.SortFunc(list, func(a, b Received) int { return cmp.Or(cmp.Compare(at(b), at(a)), cmp.Compare(b.Seq, a.Seq)) })
	return list[:min(len(list), limit(f.Limit))], nil
}

// CountEvents counts events up to maxCounted, and reports whether there are
// more.
func (s *Store) CountEvents(ctx context.Context, f EventFilter) (n int, more bool, err error) {
	if err := s.weigh(ctx, &f); err != nil {
		return 0, false, err
	}
	return s.count(ctx, "events", f.where())
}

// Recent returns the events that arrived last, the newest first, at most limit
// (and at most MaxRecent).
func (s *Store) Recent(ctx context.Context, limit int) ([]Received, error) {
	return s.events(ctx, ` ORDER BY seq DESC LIMIT ?`, min(max(limit, 0), MaxRecent))
}

const clauseOfUngrouped = ` WHERE incident_id IS NULL ORDER BY seq LIMIT ?`

// Ungrouped returns the events that are in no incident yet, the oldest first. There may be more
// of them if it returns some, whatever the limit is.
func (s *Store) Ungrouped(ctx context.Context, limit int) ([]Received, error) {
	limit = min(max(limit, 0), MaxRows)
	next := s.fresh.last() + 1 // of an event that is stored from now on
	seqs, err := collect(ctx, s, "events", func(seq *int64) []any { return []any{seq} }, `SELECT seq FROM events`+clauseOfUngrouped, limit)
	if err != nil {
		return nil, err
	}
	if len(seqs) > 0 {
		next = seqs[0]
	}
	s.fresh.drop(next)
	if list := s.fresh.find(seqs); len(list) > 0 || len(seqs) == 0 {
		return list, nil
	}
	return s.events(ctx, clauseOfUngrouped, limit)
}

// Event returns an event and its JSON as it was received, which may have been
// cut, or incident.ErrNotFound.
func (s *Store) Event(ctx context.Context, id string) (Received, []byte, error) {
	list, err := s.events(ctx, ` WHERE event_id = ?`, id)
	switch {
	case err != nil:
		return Received{}, nil, err
	case len(list) == 0:
		return Received{}, nil, incident.ErrNotFound
	}
	var body []byte
	err = s.read.QueryRowContext(ctx, `SELECT body FROM events WHERE seq = ?`, list[0].Seq).Scan(&body)
	if err != nil {
		return Received{}, nil, fmt.Errorf("read event: %w", err)
	}
	return list[0], body, nil
}

func (s *Store) events(ctx context.Context, clause string, args ...any) ([]Received, error) {
	return collect(ctx, s, "events", func(r *Received) []any {
		ev := &r.Event
		return []any{
			&r.Seq, &r.Incident, &ev.ID, instant{&r.At}, instant{&ev.CaughtAt}, &ev.Service, &ev.Instance, &ev.Verdict,
			&ev.Outcome, &ev.Key, &ev.Table, &ev.Place.Node, &ev.Place.Slot, &ev.Count, &r.Sender, whole{ev},
		}
	}, `SELECT `+eventColumns+` FROM events`+clause, args...)
}

// whole scans the body of an event, after its columns, which stay if the body was cut. The
// outcome is that of the column in any case: the event may have been settled.
type whole struct{ *notify.Event }

func (to whole) Scan(v any) error {
	var ev notify.Event
	body, ok := v.([]byte)
	if json.Unmarshal(body, &ev) == nil && ev.ID == to.ID {
		ev.Outcome = to.Outcome
		*to.Event = ev
	}
	return expect(ok, v)
}

// Counts sums up all events that are stored. A verdict without events is absent.
func (s *Store) Counts(ctx context.Context) (map[notify.Verdict]Count, error) {
	type row struct {
		verdict notify.Verdict
		Count
	}
	rows, err := collect(ctx, s, "counts of events", func(r *row) []any { return []any{&r.verdict, &r.Events, &r.Failures} },
		`SELECT verdict, count(*), sum(count) FROM events GROUP BY verdict`)
	counts := make(map[notify.Verdict]Count, len(rows))
	for _, r := range rows {
		counts[r.verdict] = r.Count
	}
	return counts, err
}
