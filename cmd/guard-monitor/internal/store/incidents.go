package store

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// maxKeys bounds the different keys that are counted for one incident.
const maxKeys = 10_000

// IncidentFilter chooses incidents. Zero fields choose all.
type IncidentFilter struct {
	IDs      []string
	Open     bool // not those that are resolved
	Service  string
	Key      string // one that an operation held of which an event reports
	Event    string // ID of one of its events
	Cluster  string
	Shard    string
	Causes   []incident.Cause
	States   []incident.State
	From, To time.Time // of events: LastAt ≥ From, FirstAt < To
	Before   string    // those with a smaller ID: the last of the page before
	Limit    int       // default DefaultRows, at most MaxRows
}

// hasKey holds for incidents with an event of a key. It looks once into an index for each
// incident: a key may have many more events than there are incidents.
const hasKey = `(EXISTS (SELECT 1 FROM events e WHERE e.incident_id = incidents.id AND e.key = ?)
	OR id IN (SELECT e.incident_id FROM event_keys k CROSS JOIN events e ON e.seq = k.seq WHERE k.key = ?))`

func (f IncidentFilter) where() where {
	var w where
	in(&w, "id", f.IDs)
	w.text("id = (SELECT incident_id FROM events WHERE event_id = ?)", f.Event)
	if f.Key != "" {
		key := text.Clip(f.Key, MaxText)
		w.add(hasKey, key, key)
	}
	if f.Open {
		w.add("state <> 'resolved'")
	}
	w.text("service = ?", f.Service)
	w.text("cluster = ?", f.Cluster)
	w.text("shard = ?", f.Shard)
	in(&w, "cause", f.Causes)
	in(&w, "state", f.States)
	w.time("last_at >= ?", f.From)
	w.time("first_at < ?", f.To)
	return w
}

const byID = " ORDER BY id DESC"

const incidentColumns = `id, group_key, service, cause, cluster, shard, node, slot, state, confidence,
	first_at, last_at, seen_at, updated_at, opened_at, resolved_at, events, keys, regressed,
	failures, undone, committed, unknowns, without, refused, evidence, exemplar, doc_link, acked_by, acked_at, merged_into, rate`

// Incidents returns incidents, the newest first.
func (s *Store) Incidents(ctx context.Context, f IncidentFilter) ([]incident.Incident, error) {
	w := f.where()
	w.text("id < ?", f.Before)
	return s.incidents(ctx, w.String()+byID+` LIMIT ?`, append(w.args, limit(f.Limit))...)
}

// CountIncidents counts incidents up to maxCounted, and reports whether there
// are more.
func (s *Store) CountIncidents(ctx context.Context, f IncidentFilter) (n int, more bool, err error) {
	return s.count(ctx, "incidents", f.where())
}

// Incident returns one incident, or incident.ErrNotFound.
func (s *Store) Incident(ctx context.Context, id string) (incident.Incident, error) {
	return s.incident(ctx, "id = ?", id)
}

// LastIncident returns the incident of a grouping key that is open, else the
// newest one that was not merged into another, or incident.ErrNotFound.
func (s *Store) LastIncident(ctx context.Context, key string) (incident.Incident, error) {
	return s.incident(ctx, "group_key = ? AND merged_into = ''", key)
}

func (s *Store) incident(ctx context.Context, cond string, arg any) (incident.Incident, error) {
	list, err := s.incidents(ctx, ` WHERE `+cond+` ORDER BY state = 'resolved', id DESC LIMIT 1`, arg)
	switch {
	case err != nil:
		return incident.Incident{}, err
	case len(list) == 0:
		return incident.Incident{}, incident.ErrNotFound
	}
	return list[0], nil
}

// incidents reads incidents with the silences that hold for them.
func (s *Store) incidents(ctx context.Context, clause string, args ...any) ([]incident.Incident, error) {
	list, err := s.readIncidents(ctx, clause, args...)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	holding, err := s.activeSilences(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	for n := range list {
		list[n].Silences = matching(holding, &list[n])
	}
	return list, nil
}

// readIncidents reads incidents without silences.
func (s *Store) readIncidents(ctx context.Context, clause string, args ...any) ([]incident.Incident, error) {
	list, err := collect(ctx, s, "incidents", func(i *incident.Incident) []any {
		e := &i.Effect
		return []any{
			&i.ID, &i.Key, &i.Service, &i.Cause, &i.Cluster, &i.Shard, &i.Place.Node, &i.Place.Slot, &i.State, &i.Confidence,
			instant{&i.FirstAt}, instant{&i.LastAt}, instant{&i.SeenAt}, instant{&i.UpdatedAt}, instant{&i.OpenedAt},
			instant{&i.ResolvedAt}, &i.Events, &i.Keys, &i.Regressed,
			&e.Failures, &e.Undone, &e.Committed, &e.Unknown, &e.Without, &e.Refused,
			document{&i.Evidence}, &i.Exemplar, &i.DocLink, &i.AckedBy, instant{&i.AckedAt}, &i.MergedInto, document{&i.Rate},
		}
	}, `SELECT `+incidentColumns+` FROM incidents`+clause, args...)
	if err != nil {
		return nil, err
	}
	return list, s.fillDoubtful(ctx, list)
}

// queryDoubtful has the keys in doubt of all incidents of a list.
const queryDoubtful = `SELECT i.value, (SELECT json_group_array(key) FROM (SELECT DISTINCT key FROM events
	WHERE incident_id = i.value AND outcome = 'unknown' AND verdict <> 'degraded' AND verdict <> 'commit_lost' ORDER BY key LIMIT ?2)) FROM json_each(?1) i`

func (s *Store) fillDoubtful(ctx context.Context, list []incident.Incident) error {
	ids := []string{}
	for _, i := range list {
		if i.Effect.Unknown > 0 {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	type row struct {
		id   string
		keys []string
	}
	rows, err := collect(ctx, s, "keys in doubt", func(r *row) []any { return []any{&r.id, document{&r.keys}} },
		queryDoubtful, document{ids}, incident.MaxDoubtful)
	if err != nil {
		return err
	}
	keys := make(map[string][]string, len(rows))
	for _, r := range rows {
		keys[r.id] = r.keys
	}
	for n := range list {
		if found := keys[list[n].ID]; len(found) > 0 {
			list[n].Effect.Doubtful = found
		}
	}
	return nil
}

// maxShown is how many of the silences that hold for an incident are read with it.
const maxShown = 3

// matching returns the first of the silences that hold for an incident.
func matching(holding []incident.Silence, i *incident.Incident) (list []incident.Silence) {
	for _, s := range holding {
		if s.Matches(*i) {
			list = append(list, s)
		}
		if len(list) == maxShown {
			break
		}
	}
	return list
}

// Acknowledge notes that somebody looks after an open incident.
func (s *Store) Acknowledge(ctx context.Context, id, by string, at time.Time) error {
	if by == "" {
		return errors.New("store: acknowledge by nobody")
	}
	return s.change(ctx, "change incident", `UPDATE incidents SET acked_by = ?, acked_at = ?, updated_at = ?
		WHERE id = ? AND state <> 'resolved'`, text.Clip(by, MaxText), micros(at), micros(at), id)
}

// Unacknowledge takes an acknowledgement back.
func (s *Store) Unacknowledge(ctx context.Context, id string, at time.Time) error {
	return s.change(ctx, "change incident", `UPDATE incidents SET acked_by = '', acked_at = 0, updated_at = ?
		WHERE id = ? AND state <> 'resolved'`, micros(at), id)
}
