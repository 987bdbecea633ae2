package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// openMonitor builds and starts guard-monitor, and waits until it takes events.
func (s *Stage) openMonitor(ctx context.Context) error {
	program := filepath.Join(s.dir, "guard-monitor")
	build := exec.CommandContext(ctx, "go", "build", "-C", "cmd/guard-monitor", "-o", program, ".") //nolint:gosec // of this repository
	build.Dir = s.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", errors.Join(err, ctx.Err()), bytes.TrimSpace(out))
	}
	v, err := newVhost(ctx, s.cfg.Servers)
	if err != nil {
		return err
	}
	s.amqp = v.url
	s.later(v.close)

	path := filepath.Join(s.dir, "monitor.db")
	p, err := s.start("guard-monitor", []string{"BELAY_AMQP_URL=" + v.url}, program, "-db", path, "-listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if s.monitor, err = p.await(ctx, "listening on "); err != nil {
		return err
	}
	return poll(ctx, startLimit, "guard-monitor is healthy", func() (bool, error) {
		return answers(ctx, s.monitor+"/healthz"), p.running()
	})
}

// prepareEvents makes the outbox anew, and has the database note each event that
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
	Missing  []string       // ids that it has not
	Verdicts map[string]int // events by verdict
	Failures int            // lock failures that these events stand for: the sum of their counts
}

// Received returns what the monitor has of the events with the given ids. Only
// its newest 1000 events are looked at, which is the most that its API returns at
// a time.
func (s *Stage) Received(ctx context.Context, ids []string) (Received, error) {
	var list struct {
		Items []struct{ Event *notify.Event }
	}
	body, err := page(ctx, s.monitor+"/api/v1/events?limit=1000")
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
	result := Received{Verdicts: make(map[string]int)}
	for _, id := range ids {
		e := events[id]
		if e == nil {
			result.Missing = append(result.Missing, id)
			continue
		}
		result.Verdicts[string(e.Verdict)]++
		if e.Verdict == "overlap" || e.Verdict == "lost" {
			result.Failures += e.Count
		}
	}
	return result, nil
}

// findRoot returns the folder of the repository.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "scripts", "stack")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in the repository, whose scripts/stack is needed", dir)
		}
	}
}

// poll waits until done reports true.
func poll(ctx context.Context, limit time.Duration, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("it did not come about that %s: %w", what, ctx.Err())
		}
	}
}

// answers tells whether a page can be had.
func answers(ctx context.Context, url string) bool {
	_, err := page(ctx, url)
	return err == nil
}

// number gets a page that is a number.
func number(ctx context.Context, url string) (int, error) {
	text, err := page(ctx, url)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// maxPage bounds what page reads.
const maxPage = 64 << 20

// page returns the body of a page that is answered with 200.
func page(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(url), nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return body, err
}
