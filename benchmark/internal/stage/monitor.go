package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// openMonitor builds and starts guard-monitor, and waits until it takes events.
func (s *Stage) openMonitor(ctx context.Context) error {
	program := filepath.Join(s.Dir, "guard-monitor")
	build := exec.CommandContext(ctx, "go", "build", "-C", "cmd/guard-monitor", "-o", program, ".") //nolint:gosec // of this repository
	build.Dir = s.Root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", errors.Join(err, ctx.Err()), bytes.TrimSpace(out))
	}
	var err error
	if s.amqp, err = s.openVhost(ctx); err != nil {
		return err
	}
	p, err := s.start("guard-monitor", []string{EnvAMQP + "=" + s.amqp}, program, "-db", filepath.Join(s.Dir, "monitor.db"), "-listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if s.monitor, err = p.await(ctx, "listening on "); err != nil {
		return err
	}
	return p.healthy(ctx, s.monitor)
}

// prepareEvents makes the outbox anew, and lets the database note each event that
// ever comes into it: the relay deletes them there.
func (s *Stage) prepareEvents(ctx context.Context) error {
	db, err := shop.OpenGorm(s.DB)
	if err != nil {
		return err
	}
	if err := s.execute(ctx, "DROP TABLE IF EXISTS belay_outbox, stored_events"); err != nil {
		return err
	}
	if err := outbox.Migrate(ctx, db); err != nil {
		return err
	}
	return s.execute(ctx,
		"CREATE TABLE stored_events (id BIGINT AUTO_INCREMENT PRIMARY KEY, event_id VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL)",
		"CREATE TRIGGER belay_outbox_noted AFTER INSERT ON belay_outbox FOR EACH ROW INSERT INTO stored_events (event_id) VALUES (NEW.event_id)",
	)
}

func (s *Stage) execute(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := s.DB.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("prepare the tables of events: %w", err)
		}
	}
	return nil
}

// Stored returns the ids of the events that came into the outbox after the
// given position, and the new position.
func (s *Stage) Stored(ctx context.Context, after int64) (ids []string, last int64, err error) {
	rows, err := s.DB.QueryContext(ctx, "SELECT id, event_id FROM stored_events WHERE id > ? ORDER BY id", after)
	if err != nil {
		return nil, after, fmt.Errorf("read the stored events: %w", err)
	}
	defer rows.Close()
	last = after
	for rows.Next() {
		var id string
		if err := rows.Scan(&last, &id); err != nil {
			return nil, after, fmt.Errorf("read the stored events: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, last, rows.Err()
}

// A Received is what the monitor has of some events.
type Received struct {
	Missing  []string // ids that it has not
	Failures int      // lock failures that these events stand for: the sum of their counts
}

// Received returns what the monitor has of the events with the given ids. Only
// its newest 1000 events are looked at, which is the most that its API returns at
// a time.
func (s *Stage) Received(ctx context.Context, ids []string) (Received, error) {
	var list struct {
		Items []struct{ Event *notify.Event }
	}
	body, err := Send(ctx, 10*time.Second, http.MethodGet, s.monitor+"/api/v1/events?limit=1000", "")
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		return Received{}, fmt.Errorf("read the events of guard-monitor: %w", err)
	}
	events := make(map[string]*notify.Event)
	for _, item := range list.Items {
		if item.Event != nil { // null: too large to be kept whole
			events[item.Event.ID] = item.Event
		}
	}
	var result Received
	for _, id := range ids {
		switch e := events[id]; {
		case e == nil:
			result.Missing = append(result.Missing, id)
		case e.Verdict == notify.VerdictOverlap, e.Verdict == notify.VerdictLost:
			result.Failures += e.Count
		}
	}
	return result, nil
}
