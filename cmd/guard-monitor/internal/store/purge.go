package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// Retention bounds what is kept. All fields are required.
type Retention struct {
	Events    time.Duration // age of events, timeline, heartbeats and switches, but the newest of each
	Incidents time.Duration // age of resolved incidents, silences, notifications and audit lines
	Rows      int64         // of events; of the other tables a tenth of it
	Bytes     int64         // of the file
}

// chunk is how many rows one transaction deletes, so that events never wait for
// long.
const chunk = 1000

// Purge deletes what r does not keep, the oldest first, in small transactions,
// and gives the space back. It returns the number of rows deleted.
func (s *Store) Purge(ctx context.Context, r Retention, now time.Time) (deleted int64, err error) {
	if min(int64(r.Events), int64(r.Incidents), r.Rows, r.Bytes) <= 0 { // or all would go
		return 0, fmt.Errorf("store: a field of %+v is not above 0", r)
	}
	old, older, lately := micros(now.Add(-r.Events)), micros(now.Add(-r.Incidents)), micros(now.Add(-stillTold))
	for _, p := range []struct {
		query string
		args  []any
	}{
		{`DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE received_at < ?` + notNewest("events", "seq") + ` ORDER BY received_at LIMIT ?)`, []any{old}},
		{beyond("events", "seq"), []any{r.Rows}},
		{`DELETE FROM timeline WHERE id IN (SELECT id FROM timeline WHERE at < ?` + notNewest("timeline", "id") + ` ORDER BY at LIMIT ?)`, []any{old}},
		{beyond("timeline", "id"), []any{r.Rows / 10}},
		{`DELETE FROM incidents WHERE id IN (SELECT id FROM incidents WHERE state = 'resolved' AND updated_at < ? ORDER BY updated_at LIMIT ?)`, []any{older}},
		{`DELETE FROM incidents WHERE id IN (SELECT id FROM incidents WHERE state = 'resolved' AND id <=
			(SELECT id FROM incidents ORDER BY id DESC LIMIT 1 OFFSET ?) ORDER BY id LIMIT ?)`, []any{r.Rows / 10}},
		{`DELETE FROM notifications WHERE id IN (SELECT id FROM notifications n WHERE at < ?` + mayGo + ` ORDER BY id LIMIT ?)`, []any{older, lately}},
		{`DELETE FROM notifications WHERE id IN (SELECT id FROM notifications n WHERE id <=
			(SELECT id FROM notifications ORDER BY id DESC LIMIT 1 OFFSET ?)` + mayGo + ` ORDER BY id LIMIT ?)`, []any{r.Rows / 10, lately}},
		{`DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? ORDER BY id LIMIT ?)`, []any{older}},
		{beyond("audit", "id"), []any{r.Rows / 10}},
		{`DELETE FROM silences WHERE id IN (SELECT id FROM silences WHERE ends_at < ? LIMIT ?)`, []any{older}},
		{`DELETE FROM heartbeats WHERE (service, instance) IN (
			SELECT h.service, h.instance FROM heartbeats h WHERE h.received_at < ?` + notLast + ` LIMIT ?)`, []any{old}},
		{heartbeatsBeyond(notLast), []any{incident.MaxHeartbeats}},
		{heartbeatsBeyond(""), []any{10 * incident.MaxHeartbeats}}, // or many names would fill the disk
		{`DELETE FROM switches WHERE id IN (SELECT w.id FROM switches w WHERE w.seen_at < ?
			AND EXISTS (SELECT 1 FROM switches n WHERE n.service = w.service AND n.id > w.id) LIMIT ?)`, []any{old}},
		{beyond("switches", "id"), []any{incident.MaxHeartbeats}},
		{`DELETE FROM services WHERE service IN (SELECT service FROM services k WHERE
			NOT EXISTS (SELECT 1 FROM heartbeats h WHERE h.service = k.service)
			AND NOT EXISTS (SELECT 1 FROM events e WHERE e.service = k.service) LIMIT ?)`, nil},
	} {
		n, err := s.drain(ctx, p.query, p.args...)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	n, err := s.shrink(ctx, r.Bytes)
	return deleted + n, err
}

// stillTold is how long after its end people may still be notified of an incident.
const stillTold = 48 * time.Hour

// mayGo leaves out the last delivered notification of each receiver of an incident
// that is open or ended lately.
const mayGo = ` AND NOT (
	EXISTS (SELECT 1 FROM incidents i WHERE i.id = n.incident_id AND (i.state <> 'resolved' OR i.updated_at >= ?))
	AND id = (SELECT max(id) FROM notifications WHERE receiver = n.receiver AND incident_id = n.incident_id AND error = ''))`

// notLast leaves out the last heartbeat of a service, by which it is known.
const notLast = ` AND EXISTS (SELECT 1 FROM heartbeats n WHERE n.service = h.service AND n.received_at > h.received_at)`

// heartbeatsBeyond deletes heartbeats that are not among the newest.
func heartbeatsBeyond(but string) string {
	return `DELETE FROM heartbeats WHERE (service, instance) IN (
		SELECT h.service, h.instance FROM heartbeats h WHERE h.received_at <=
			(SELECT received_at FROM heartbeats ORDER BY received_at DESC LIMIT 1 OFFSET ?)` + but + ` ORDER BY h.received_at LIMIT ?)`
}

// notNewest leaves out the newest row of a table, however old it is: SQLite would
// give its number again, to a row that readers would not take for new.
func notNewest(table, id string) string {
	return fmt.Sprintf(` AND %[2]s < (SELECT max(%[2]s) FROM %[1]s)`, table, id)
}

// beyond deletes the rows of a table that are not among its newest.
func beyond(table, id string) string {
	return fmt.Sprintf(`DELETE FROM %[1]s WHERE %[2]s IN (SELECT %[2]s FROM %[1]s WHERE %[2]s <=
		(SELECT %[2]s FROM %[1]s ORDER BY %[2]s DESC LIMIT 1 OFFSET ?) ORDER BY %[2]s LIMIT ?)`, table, id)
}

// drain runs a DELETE, chunk by chunk, until nothing is left of it.
func (s *Store) drain(ctx context.Context, query string, args ...any) (deleted int64, err error) {
	for {
		res, err := s.write.ExecContext(ctx, query, append(slices.Clip(args), chunk)...)
		if err != nil {
			return deleted, fmt.Errorf("purge: %w", err)
		}
		n, err := res.RowsAffected()
		deleted += n
		if err != nil || n < chunk {
			return deleted, err
		}
	}
}

// shrink deletes the oldest events and timeline while what the file holds is
// more than limit, and gives free pages back to the system.
func (s *Store) shrink(ctx context.Context, limit int64) (deleted int64, err error) {
	for {
		size, err := s.Size(ctx)
		if err != nil {
			return deleted, err
		}
		if size.Bytes-size.Free <= limit {
			break
		}
		n, err := s.deleteOldest(ctx)
		deleted += n
		if err != nil {
			return deleted, err
		}
		if n == 0 { // what is left is not ours to delete
			break
		}
	}
	return deleted, s.giveBack(ctx)
}

// giveBack returns free pages to the system, some at a time.
func (s *Store) giveBack(ctx context.Context) error {
	for last := int64(math.MaxInt64); ; {
		size, err := s.Size(ctx)
		if err != nil || size.Free == 0 || size.Free >= last {
			return err
		}
		last = size.Free
		if err := s.vacuum(ctx); err != nil {
			return fmt.Errorf("give space back: %w", err)
		}
	}
}

// vacuum gives a thousand pages back: outside a transaction, and read to the
// end, since each step frees a page.
func (s *Store) vacuum(ctx context.Context) error {
	rows, err := s.write.QueryContext(ctx, `PRAGMA incremental_vacuum(1000)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		continue
	}
	return rows.Err()
}

// explains is how much older than an event the timeline that explains it may be.
const explains = time.Hour

// deleteOldest deletes the oldest events, and the timeline that is too old for
// those that are left; where only the newest event is, the oldest entries.
func (s *Store) deleteOldest(ctx context.Context) (deleted int64, err error) {
	const few = chunk / 20 // they may be large
	err = s.in(ctx, "purge", func(tx *sql.Tx) error {
		events, err := execIn(ctx, tx, `DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE true`+
			notNewest("events", "seq")+` ORDER BY seq LIMIT ?)`, few)
		if err != nil {
			return err
		}
		before := int64(math.MaxInt64)
		if events > 0 {
			if err := tx.QueryRowContext(ctx, `SELECT min(received_at) FROM events`).Scan(&before); err != nil {
				return err
			}
			before -= explains.Microseconds()
		}
		entries, err := execIn(ctx, tx, `DELETE FROM timeline WHERE id IN (SELECT id FROM timeline WHERE at < ?`+
			notNewest("timeline", "id")+` ORDER BY at LIMIT ?)`, before, few)
		deleted = events + entries
		return err
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}

// execIn runs a statement in a transaction and returns how many rows it changed.
func execIn(ctx context.Context, tx *sql.Tx, stmt string, args ...any) (int64, error) {
	return changed(tx.ExecContext(ctx, stmt, args...))
}

// Size is how much the store holds.
type Size struct {
	Bytes  int64     // of the database file, without its log
	Free   int64     // bytes of it that are not in use
	Oldest time.Time // when the oldest event was stored; zero = there is none
}

// Size returns how much the store holds.
func (s *Store) Size(ctx context.Context) (Size, error) {
	var pages, free, bytes, oldest int64
	err := errors.Join(
		s.read.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&pages),
		s.read.QueryRowContext(ctx, `PRAGMA freelist_count`).Scan(&free),
		s.read.QueryRowContext(ctx, `PRAGMA page_size`).Scan(&bytes),
		s.read.QueryRowContext(ctx, `SELECT coalesce(min(received_at), 0) FROM events`).Scan(&oldest),
	)
	if err != nil {
		return Size{}, fmt.Errorf("measure store: %w", err)
	}
	return Size{Bytes: pages * bytes, Free: free * bytes, Oldest: fromMicros(oldest)}, nil
}
