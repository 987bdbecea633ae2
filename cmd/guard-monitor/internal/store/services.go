package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// MaxServices is how many services one sender may make known. Forget makes room.
const MaxServices = 1000

// ErrManyServices is returned for an event or a heartbeat of a service that is not known,
// if its sender has made MaxServices known.
var ErrManyServices = errors.New("its sender has made too many services known; guard-monitor forget makes room")

const selectKnown = `SELECT service FROM services WHERE service IN (SELECT value FROM json_each(?))`

// knownServices returns which services of a batch are known, by the prepared selectKnown.
func knownServices(ctx context.Context, known *sql.Stmt, batch []*addition) (map[string]bool, error) {
	var names []string
	for _, a := range batch {
		if name := text.Clip(a.event.Service, MaxText); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	rows, err := known.QueryContext(ctx, document{names})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]bool)
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		found[name] = true
	}
	return found, rows.Err()
}

// introduce makes a service known, if it is not.
func introduce(ctx context.Context, tx *sql.Tx, service, sender string) error {
	var known bool
	err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM services WHERE service = ?)`, service).Scan(&known)
	if err != nil || known {
		return err
	}
	added, err := execIn(ctx, tx, `INSERT INTO services (service, sender, since)
		SELECT ?1, ?2, ?3 WHERE (SELECT count(*) FROM services WHERE sender = ?2) < ?4`,
		service, sender, micros(time.Now()), MaxServices)
	if err == nil && added == 0 {
		return fmt.Errorf("service %.80q: %w", service, ErrManyServices)
	}
	return err
}

// Made reports whether a service is known, and how many services a sender has made known.
func (s *Store) Made(ctx context.Context, service, sender string) (known bool, made int, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM services WHERE service = ?),
		(SELECT count(*) FROM services WHERE sender = ?)`, text.Clip(service, MaxText), text.Clip(sender, MaxText)).Scan(&known, &made)
	if err != nil {
		return false, 0, fmt.Errorf("read services: %w", err)
	}
	return known, made, nil
}

// Forget deletes the heartbeats and switches of the services that a pattern matches, in
// which * stands for any text: they were taken out of service, and their silence is no
// incident. It returns their names in order, none if no known service matches. An event or
// a heartbeat makes a service known again.
func (s *Store) Forget(ctx context.Context, pattern string) (forgotten []string, err error) {
	known, err := collect(ctx, s, "services", func(name *string) []any { return []any{name} },
		`SELECT service FROM services ORDER BY service`)
	if err != nil {
		return nil, err
	}
	for _, name := range known {
		if incident.Glob(pattern, name) {
			forgotten = append(forgotten, name)
		}
	}
	if len(forgotten) == 0 {
		return nil, nil
	}
	err = s.in(ctx, "forget services", func(tx *sql.Tx) error {
		for _, table := range []string{"heartbeats", "switches", "services"} {
			_, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE service IN (SELECT value FROM json_each(?))`, document{forgotten}) //nolint:gosec // a table of the list above
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return forgotten, nil
}
