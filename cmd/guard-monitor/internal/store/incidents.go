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
	Open         bool // not those that are resolved
	Service      string
	Cluster      string
	Shard        string
	Causes       []incident.Cause
	States       []incident.State
	From, To     time.Time // of events: LastAt ≥ From, FirstAt < To
	UpdatedSince time.Time
	Before       string // those with a smaller ID: the last of the page before
	Limit        int    // default DefaultRows, at most MaxRows
}

func (f IncidentFilter) where() where {
	var w where
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
	w.time("updated_at >= ?", f.UpdatedSince)
	return w
}

// order is that of creation. Where few of many are chosen, the plus has them
// found by what they are chosen for, and then sorted, instead of through all.
func (f IncidentFilter) order() string {
	if f.Open || !f.UpdatedSince.IsZero() {
		return " ORDER BY +id DESC"
	}
	return " ORDER BY id DESC"
}

const incidentColumns = `id, group_key, service, cause, cluster, shard, node, slot, state, confidence,
	first_at, last_at, seen_at, updated_at, opened_at, resolved_at, events, keys, regressed,
	failures, undone, committed, unknowns, without, refused, evidence, exemplar, doc_link, acked_by, acked_at, merged_into, rate`

// Incidents returns incidents, the newest first.
func (s *Store) Incidents(ctx context.Context, f IncidentFilter) ([]incident.Incident, error) {
	w := f.where()
	w.text("id < ?", f.Before)
	return s.incidents(ctx, w.String()+f.order()+` LIMIT ?`, append(w.args, limit(f.Limit))...)
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

// incidents reads incidents, and what is not in their own rows.
func (s *Store) incidents(ctx context.Context, clause string, args ...any) ([]incident.Incident, error) {
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
	if err := s.fillDoubtful(ctx, list); err != nil {
		return nil, err
	}
	return list, s.fillSilences(ctx, list)
}

const queryDoubtful = `SELECT DISTINCT key FROM events
	WHERE incident_id = ? AND outcome = 'unknown' AND verdict <> 'degraded' ORDER BY key LIMIT ?`

func (s *Store) fillDoubtful(ctx context.Context, list []incident.Incident) error {
	for n := range list {
		i := &list[n]
		if i.Effect.Unknown == 0 {
			continue
		}
		var err error
		i.Effect.Doubtful, err = collect(ctx, s, "keys in doubt", func(key *string) []any { return []any{key} },
			queryDoubtful, i.ID, incident.MaxDoubtful)
		if err != nil {
			return err
		}
	}
	return nil
}

// maxShown is how many of the silences that hold for an incident are read with it.
const maxShown = 3

func (s *Store) fillSilences(ctx context.Context, list []incident.Incident) error {
	if len(list) == 0 {
		return nil
	}
	silences, err := s.activeSilences(ctx, time.Now())
	if err != nil {
		return err
	}
	for i := range list {
		for _, silence := range silences {
			if silence.Matches(list[i]) {
				list[i].Silences = append(list[i].Silences, silence)
			}
			if len(list[i].Silences) == maxShown {
				break
			}
		}
	}
	return nil
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
