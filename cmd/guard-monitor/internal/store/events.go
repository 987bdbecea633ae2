package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
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

// Add stores ev with raw, the JSON it was decoded from, and sender, who is known to
// have sent it, or "". A nil raw is made from ev. It reports false for an event whose ID is stored already, and returns
// after the event is on disk.
func (s *Store) Add(ctx context.Context, ev notify.Event, raw []byte, sender string) (added bool, err error) {
	if err := ev.Validate(); err != nil {
		return false, err
	}
	if raw == nil {
		if raw, err = json.Marshal(&ev); err != nil {
			return false, fmt.Errorf("encode event: %w", err)
		}
	}
	res, err := s.write.ExecContext(ctx, `
		INSERT INTO events (event_id, received_at, caught_at, service, instance, verdict, outcome,
			key, table_name, node, slot, count, body, body_size, sender)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (event_id) DO NOTHING`,
		ev.ID, time.Now().UnixMicro(), ev.CaughtAt.UnixMicro(),
		text.Clip(ev.Service, MaxText), text.Clip(ev.Instance, MaxText), ev.Verdict, ev.Outcome,
		text.Clip(ev.Key, MaxText), text.Clip(ev.Table, MaxText), text.Clip(ev.Place.Node, MaxText),
		ev.Place.Slot, min(ev.Count, MaxCount), raw[:min(len(raw), MaxBody)], len(raw), text.Clip(sender, MaxText))
	if err != nil {
		return false, fmt.Errorf("insert event: %w", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// EventFilter chooses events. Zero fields choose all.
type EventFilter struct {
	Service  string
	Key      string
	Table    string
	Incident string // ID
	Verdicts []notify.Verdict
	Causes   []incident.Cause
	From, To time.Time // when they were caught: From ≤ CaughtAt < To
	Before   int64     // those with a smaller Seq: the last of the page before
	Limit    int       // default DefaultRows, at most MaxRows
}

func (f EventFilter) where() where {
	var w where
	w.text("service = ?", f.Service)
	w.text("key = ?", text.Clip(f.Key, MaxText))
	w.text("table_name = ?", f.Table)
	w.text("incident_id = ?", f.Incident)
	in(&w, "verdict", f.Verdicts)
	w.time("caught_at >= ?", f.From)
	w.time("caught_at < ?", f.To)
	if f.Before > 0 {
		w.add("seq < ?", f.Before)
	}
	if len(f.Causes) > 0 {
		var causes where
		in(&causes, "cause", f.Causes)
		w.add("incident_id IN (SELECT id FROM incidents"+causes.String()+")", causes.args...)
	}
	return w
}

const eventColumns = `seq, coalesce(incident_id, ''), event_id, received_at, caught_at, service, instance,
	verdict, outcome, key, table_name, node, slot, count, sender, body`

// Events returns events, the last that arrived first.
func (s *Store) Events(ctx context.Context, f EventFilter) ([]Received, error) {
	w := f.where()
	return s.events(ctx, w.String()+` ORDER BY seq DESC LIMIT ?`, append(w.args, limit(f.Limit))...)
}

// CountEvents counts events up to maxCounted, and reports whether there are
// more.
func (s *Store) CountEvents(ctx context.Context, f EventFilter) (n int, more bool, err error) {
	return s.count(ctx, "events", f.where())
}

// Recent returns the events that arrived last, the newest first, at most limit
// (and at most MaxRecent).
func (s *Store) Recent(ctx context.Context, limit int) ([]Received, error) {
	return s.events(ctx, ` ORDER BY seq DESC LIMIT ?`, min(max(limit, 0), MaxRecent))
}

// Ungrouped returns the events that are in no incident yet, the oldest first.
func (s *Store) Ungrouped(ctx context.Context, limit int) ([]Received, error) {
	return s.events(ctx, ` WHERE incident_id IS NULL ORDER BY seq LIMIT ?`, min(max(limit, 0), MaxRows))
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

// whole scans the body of an event, after its columns, which stay if the body was cut.
type whole struct{ *notify.Event }

func (to whole) Scan(v any) error {
	var ev notify.Event
	body, ok := v.([]byte)
	if json.Unmarshal(body, &ev) == nil && ev.ID == to.ID {
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
