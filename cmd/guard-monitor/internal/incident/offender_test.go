package incident_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

// An event as old as can be written is valid, and its lock's time to live leads
// to a time that cannot.
func TestEventFromTheYear0(t *testing.T) {
	b := newBench(t)
	b.send("a", func(ev *notify.Event) {
		intruded(ev)
		ev.AcquiredAt, ev.Deadline = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Add(-b.now.Sub(caught)), time.Time{}
	})
	b.send("b", expired)
	b.round(0)
	b.incidents(2)
}

// doubtfulStore fails to read what one key's events are explained from.
type doubtfulStore struct{ *store.Store }

func (s doubtfulStore) Writers(ctx context.Context, key string, from, to time.Time) ([]incident.Received, error) {
	if key == "bad" {
		return nil, errors.New("cannot be read")
	}
	return s.Store.Writers(ctx, key, from, to)
}

// An event that cannot be explained keeps back no other.
func TestEventThatCannotBeExplained(t *testing.T) {
	b := newBench(t)
	b.tracker = b.track(doubtfulStore{b.store})
	b.send("a", intruded)
	b.send("bad", intruded)
	b.send("c", intruded)
	b.round(0)
	list := b.incidents(2)
	if list[0].Cause != incident.Bypass || list[0].Events != 2 || list[1].Cause != incident.Unknown || list[1].Events != 1 {
		t.Errorf("incidents %+v", list)
	}
	if left, err := b.store.Ungrouped(t.Context(), 10); err != nil || len(left) != 0 {
		t.Errorf("not grouped: %v, %v", left, err)
	}
}

// FuzzGroup has any valid event put into an incident.
func FuzzGroup(f *testing.F) {
	examples, err := filepath.Glob("../../../../notify/testdata/*.json")
	if err != nil || len(examples) == 0 {
		f.Fatalf("no example events: %v", err)
	}
	for _, name := range examples {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	ancient := overlap(intruded)
	ancient.Deadline = time.Time{}
	ancient.AcquiredAt = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	body, err := json.Marshal(ancient)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	s, err := store.Open(f.Context(), filepath.Join(f.TempDir(), "m.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	b := &bench{store: s, watching: true}
	f.Fuzz(func(t *testing.T, body []byte) {
		var ev notify.Event
		if ev.UnmarshalJSON(body) != nil {
			return
		}
		if _, err := s.Add(t.Context(), ev, body, ""); err != nil {
			t.Fatalf("a valid event is not stored: %v", err)
		}
		b.t, b.now, b.connected, b.listening = t, time.Now(), true, true
		b.tracker = b.track(s)
		b.round(0)
		if left, err := s.Ungrouped(t.Context(), 1); err != nil || len(left) > 0 {
			t.Fatalf("not grouped: %v, %v", left, err)
		}
	})
}
