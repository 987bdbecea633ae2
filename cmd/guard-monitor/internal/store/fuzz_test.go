package store_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

// FuzzReceive has any bytes decoded, stored, read back and explained: what is a
// valid event is kept, and found by its ID; nothing else gets in.
func FuzzReceive(f *testing.F) {
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
	f.Add([]byte(`{"specversion":"1.0"}`))
	s, err := store.Open(f.Context(), filepath.Join(f.TempDir(), "m.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, body []byte) {
		var ev notify.Event
		if ev.UnmarshalJSON(body) != nil {
			return
		}
		if _, err := s.Add(t.Context(), ev, body, ""); err != nil {
			t.Fatalf("a valid event is not stored: %v", err)
		}
		got, _, err := s.Event(t.Context(), ev.ID)
		if err != nil || got.Event.ID != ev.ID {
			t.Fatalf("read back %+v, %v", got, err)
		}
		if _, err := s.Writers(t.Context(), ev.Key, ev.CaughtAt.Add(-time.Hour), ev.CaughtAt.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		x := incident.Explain(incident.Facts{Event: ev, Watched: true, SeenAt: ev.CaughtAt, Others: []notify.Event{ev}})
		if x.Cause == "" || len(x.Evidence) == 0 {
			t.Fatalf("explained as %+v", x)
		}
	})
}
