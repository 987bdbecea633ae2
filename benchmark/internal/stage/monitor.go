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
	address, err := p.await(ctx, "listening on ")
	if err != nil {
		return err
	}
	err = poll(ctx, startLimit, "guard-monitor is healthy", func() (bool, error) {
		return answers(ctx, address+"/healthz"), p.running()
	})
	if err != nil {
		return err
	}
	s.monitor = address
	return nil
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
	Failures int            // lock failures that these events tell of: the sum of their counts
}

// Received asks the monitor for its newest events.
func (s *Stage) Received(ctx context.Context, ids []string) (Received, error) {
	text, err := page(ctx, s.monitor+"/api/v1/events?limit=1000")
	if err != nil {
		return Received{}, err
	}
	var body struct {
		Items []struct{ Event notify.Event }
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		return Received{}, fmt.Errorf("events of guard-monitor: %w", err)
	}
	got := make(map[string]notify.Event, len(body.Items))
	for _, item := range body.Items {
		got[item.Event.ID] = item.Event
	}
	result := Received{Verdicts: make(map[string]int)}
	for _, id := range ids {
		ev, ok := got[id]
		if !ok {
			result.Missing = append(result.Missing, id)
			continue
		}
		result.Verdicts[string(ev.Verdict)]++
		if ev.Verdict == notify.VerdictOverlap || ev.Verdict == notify.VerdictLost {
			result.Failures += ev.Count
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
	return strconv.Atoi(text)
}

func page(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(url), nil)
	if err != nil {
		return "", err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return string(body), err
}
