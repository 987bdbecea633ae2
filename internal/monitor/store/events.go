package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/belaygo/belay/internal/monitor/text"
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
const MaxRecent = 1000

// Received is an event as the store has it.
type Received struct {
	At    time.Time    // when it was stored
	Event notify.Event // whole if the body was, else what the columns hold
}

// Count sums up the events of one verdict.
type Count struct {
	Events   int64
	Failures int64 // sum of the events' counts
}

// Add stores ev with raw, the JSON it was decoded from; a nil raw is made from
// ev. It reports false for an event whose ID is stored already, and returns
// after the event is on disk.
func (s *Store) Add(ctx context.Context, ev notify.Event, raw []byte) (added bool, err error) {
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
			key, table_name, node, slot, count, body, body_size)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (event_id) DO NOTHING`,
		ev.ID, time.Now().UnixMicro(), ev.CaughtAt.UnixMicro(),
		text.Clip(ev.Service, MaxText), text.Clip(ev.Instance, MaxText), ev.Verdict, ev.Outcome,
		text.Clip(ev.Key, MaxText), text.Clip(ev.Table, MaxText), text.Clip(ev.Place.Node, MaxText),
		ev.Place.Slot, min(ev.Count, MaxCount), raw[:min(len(raw), MaxBody)], len(raw))
	if err != nil {
		return false, fmt.Errorf("insert event: %w", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// Recent returns the events that arrived last, the newest first, at most limit
// (and at most MaxRecent).
func (s *Store) Recent(ctx context.Context, limit int) ([]Received, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT event_id, received_at, caught_at, service, instance, verdict, outcome,
			key, table_name, node, slot, count, body
		FROM events ORDER BY seq DESC LIMIT ?`, min(max(limit, 0), MaxRecent))
	if err != nil {
		return nil, fmt.Errorf("select events: %w", err)
	}
	defer rows.Close()
	var recent []Received
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("read event: %w", err)
		}
		recent = append(recent, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return recent, nil
}

func scan(rows *sql.Rows) (Received, error) {
	var (
		ev               notify.Event
		received, caught int64
		body             []byte
	)
	err := rows.Scan(&ev.ID, &received, &caught, &ev.Service, &ev.Instance, &ev.Verdict, &ev.Outcome,
		&ev.Key, &ev.Table, &ev.Place.Node, &ev.Place.Slot, &ev.Count, &body)
	if err != nil {
		return Received{}, err
	}
	ev.CaughtAt = time.UnixMicro(caught).UTC()
	var whole notify.Event
	if json.Unmarshal(body, &whole) == nil && whole.ID == ev.ID {
		ev = whole
	}
	return Received{At: time.UnixMicro(received).UTC(), Event: ev}, nil
}

// Counts sums up all events that are stored. A verdict without events is absent.
func (s *Store) Counts(ctx context.Context) (map[notify.Verdict]Count, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT verdict, count(*), sum(count) FROM events GROUP BY verdict`)
	if err != nil {
		return nil, fmt.Errorf("count events: %w", err)
	}
	defer rows.Close()
	counts := make(map[notify.Verdict]Count)
	for rows.Next() {
		var verdict notify.Verdict
		var c Count
		if err := rows.Scan(&verdict, &c.Events, &c.Failures); err != nil {
			return nil, fmt.Errorf("count events: %w", err)
		}
		counts[verdict] = c
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("count events: %w", err)
	}
	return counts, nil
}
