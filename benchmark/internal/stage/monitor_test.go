package stage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/belaygo/belay/notify"
)

// TestReceivedCountsFailures reads what docs/api.md describes.
func TestReceivedCountsFailures(t *testing.T) {
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/events" || r.URL.Query().Get("limit") != "1000" {
			t.Errorf("%s was requested", r.URL)
		}
		event := func(id string, verdict notify.Verdict, outcome notify.Outcome, count int) string {
			text, err := json.Marshal(notify.Event{ID: id, Service: "s", Verdict: verdict, Outcome: outcome, CaughtAt: time.Now(), Count: count})
			if err != nil {
				t.Error(err)
			}
			return string(text)
		}
		fmt.Fprintf(w, `{"items":[{"seq":4,"event":null},{"seq":3,"event":%s},{"seq":2,"event":%s},{"seq":1,"event":%s}]}`,
			event("c", "degraded", "committed", 9), event("b", "lost", "rolled_back", 1), event("a", "overlap", "refused", 3))
	}))
	defer monitor.Close()
	s := &Stage{monitor: monitor.URL}
	got, err := s.Received(t.Context(), []string{"a", "b", "c", "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Failures != 4 || len(got.Missing) != 1 || got.Missing[0] != "x" {
		t.Errorf("received %+v; want 4 failures, and x missing", got)
	}
}

func TestReceivedSaysWhatFailed(t *testing.T) {
	monitor := httptest.NewServer(http.NotFoundHandler())
	defer monitor.Close()
	s := &Stage{monitor: monitor.URL}
	if _, err := s.Received(t.Context(), nil); err == nil {
		t.Error("no error when the monitor answers 404")
	}
}
