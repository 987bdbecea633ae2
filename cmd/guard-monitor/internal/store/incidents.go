package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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
	list, err := collect(ctx, s.read, scanIncident, `SELECT `+incidentColumns+` FROM incidents`+w.String()+
		f.order()+` LIMIT ?`, append(w.args, limit(f.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("read incidents: %w", err)
	}
	return list, s.fill(ctx, list)
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
	list, err := collect(ctx, s.read, scanIncident,
		`SELECT `+incidentColumns+` FROM incidents WHERE `+cond+` ORDER BY state = 'resolved', id DESC LIMIT 1`, arg)
	switch {
	case err != nil:
		return incident.Incident{}, fmt.Errorf("read incident: %w", err)
	case len(list) == 0:
		return incident.Incident{}, incident.ErrNotFound
	}
	err = s.fill(ctx, list)
	return list[0], err
}

// fill fills in what is not in the incidents' own rows.
func (s *Store) fill(ctx context.Context, list []incident.Incident) error {
	if err := s.fillDoubtful(ctx, list); err != nil {
		return err
	}
	return s.fillSilenced(ctx, list)
}

const queryDoubtful = `SELECT DISTINCT key FROM events
	WHERE incident_id = ? AND outcome = 'unknown' AND verdict <> 'degraded' ORDER BY key LIMIT ?`

func (s *Store) fillDoubtful(ctx context.Context, list []incident.Incident) error {
	for n := range list {
		i := &list[n]
		if i.Effect.Unknown == 0 {
			continue
		}
		keys, err := collect(ctx, s.read, scanKey, queryDoubtful, i.ID, incident.MaxDoubtful)
		if err != nil {
			return fmt.Errorf("read keys in doubt: %w", err)
		}
		i.Effect.Doubtful = keys
	}
	return nil
}

func scanKey(row scanner) (key string, err error) {
	err = row.Scan(&key)
	return key, err
}

func (s *Store) fillSilenced(ctx context.Context, list []incident.Incident) error {
	if len(list) == 0 {
		return nil
	}
	silences, err := s.silences(ctx, time.Now())
	if err != nil {
		return err
	}
	for i := range list {
		for _, silence := range silences {
			list[i].Silenced = list[i].Silenced || silence.Matches(list[i])
		}
	}
	return nil
}

func scanIncident(row scanner) (i incident.Incident, err error) {
	var first, last, seen, updated, opened, resolved, acked int64
	var evidence, rate []byte
	err = row.Scan(&i.ID, &i.Key, &i.Service, &i.Cause, &i.Cluster, &i.Shard, &i.Place.Node, &i.Place.Slot,
		&i.State, &i.Confidence, &first, &last, &seen, &updated, &opened, &resolved,
		&i.Events, &i.Keys, &i.Regressed, &i.Effect.Failures, &i.Effect.Undone, &i.Effect.Committed, &i.Effect.Unknown,
		&i.Effect.Without, &i.Effect.Refused, &evidence, &i.Exemplar, &i.DocLink, &i.AckedBy, &acked, &i.MergedInto, &rate)
	if err != nil {
		return i, err
	}
	i.FirstAt, i.LastAt, i.SeenAt = fromMicros(first), fromMicros(last), fromMicros(seen)
	i.UpdatedAt, i.OpenedAt = fromMicros(updated), fromMicros(opened)
	i.ResolvedAt, i.AckedAt = fromMicros(resolved), fromMicros(acked)
	return i, errors.Join(json.Unmarshal(evidence, &i.Evidence), json.Unmarshal(rate, &i.Rate))
}

// Acknowledge notes that somebody looks after an open incident.
func (s *Store) Acknowledge(ctx context.Context, id, by string, at time.Time) error {
	if by == "" {
		return errors.New("store: acknowledge by nobody")
	}
	return s.changeIncident(ctx, `UPDATE incidents SET acked_by = ?, acked_at = ?, updated_at = ?
		WHERE id = ? AND state <> 'resolved'`, text.Clip(by, MaxText), micros(at), micros(at), id)
}

// Unacknowledge takes an acknowledgement back.
func (s *Store) Unacknowledge(ctx context.Context, id string, at time.Time) error {
	return s.changeIncident(ctx, `UPDATE incidents SET acked_by = '', acked_at = 0, updated_at = ?
		WHERE id = ? AND state <> 'resolved'`, micros(at), id)
}

func (s *Store) changeIncident(ctx context.Context, stmt string, args ...any) error {
	res, err := s.write.ExecContext(ctx, stmt, args...)
	if err != nil {
		return fmt.Errorf("change incident: %w", err)
	}
	return found(res)
}

// found returns incident.ErrNotFound if a statement changed nothing.
func found(res sql.Result) error {
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return incident.ErrNotFound
	}
	return err
}
