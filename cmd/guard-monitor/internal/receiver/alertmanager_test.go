package receiver_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

// posted returns the alerts of all requests.
func (s *server) posted(t *testing.T) (all []struct{ StartsAt, EndsAt time.Time }) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.got {
		var part []struct{ StartsAt, EndsAt time.Time }
		if err := json.Unmarshal(g.body, &part); err != nil {
			t.Fatal(err)
		}
		all = append(all, part...)
	}
	return all
}

// Many alerts are posted in parts, and a part that is refused keeps none of the
// others back.
func TestAlertmanagerTakesAll(t *testing.T) {
	n := notification()
	for len(n.Alerts) < 1000 {
		n.Alerts = append(n.Alerts, n.Alerts[0])
	}
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		s := newServer(t, status, "")
		err := newReceiver(t, receiver.Config{Kind: receiver.Alertmanager, URL: s.URL}).Send(t.Context(), n)
		if failed, ok := errors.AsType[*receiver.Error](err); ok != (status != http.StatusOK) || ok && !failed.Permanent {
			t.Errorf("status %d: Send: %v", status, err)
		}
		if got := len(s.posted(t)); got != len(n.Alerts) || len(s.got) < 2 {
			t.Errorf("status %d: %d alerts in %d requests, want %d in parts", status, got, len(s.got), len(n.Alerts))
		}
	}
}

// Alertmanager refuses an alert that ends before it begins, which is what clocks
// that differ make of it.
func TestAlertmanagerEndsAfterTheStart(t *testing.T) {
	s := newServer(t, http.StatusOK, "")
	n := notification()
	n.Alerts[0].StartsAt = now.Add(time.Hour)
	n.Alerts[1].StartsAt = n.Alerts[1].EndsAt.Add(time.Second)
	if err := newReceiver(t, receiver.Config{Kind: receiver.Alertmanager, URL: s.URL}).Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for i, a := range s.posted(t) {
		if a.StartsAt.After(a.EndsAt) {
			t.Errorf("alert %d: from %v to %v", i, a.StartsAt, a.EndsAt)
		}
	}
}
