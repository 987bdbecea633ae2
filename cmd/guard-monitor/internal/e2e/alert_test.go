package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/internal/testwait"
)

// people are who the monitor's webhook reaches.
type people struct {
	mu     sync.Mutex
	alerts []alert
}

type alert struct {
	Reason      string            `json:"-"` // of the message that it came in
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// reachable starts the webhook and returns settings of a monitor that calls it.
func (p *people) reachable(t *testing.T, redis []string) (settings string) {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	settings = filepath.Join(t.TempDir(), "guard-monitor.yaml")
	text := fmt.Sprintf(`listen: 127.0.0.1:0
redis:
  - name: main
    nodes: ["%s"]
receivers:
  - name: people
    type: webhook
    url: %s/
    group_wait: 0s
`, strings.Join(redis, `", "`), server.URL)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings
}

func (p *people) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Reason string  `json:"notification_reason"`
		Alerts []alert `json:"alerts"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range body.Alerts {
		body.Alerts[n].Reason = body.Reason
	}
	p.alerts = append(p.alerts, body.Alerts...)
}

// told waits until people are told of a cause, and returns the alert as text.
func (s *stage) told(cause incident.Cause) string {
	s.t.Helper()
	var found alert
	testwait.Until(s.t, "people are told of the cause "+string(cause), func() bool {
		s.people.mu.Lock()
		defer s.people.mu.Unlock()
		for _, a := range s.people.alerts {
			if a.Labels["cause"] == string(cause) {
				found = a
				return true
			}
		}
		return false
	})
	var b strings.Builder
	for _, name := range []string{receiver.AnnotationSummary, receiver.AnnotationDescription, receiver.AnnotationEvidence, receiver.AnnotationNext} {
		b.WriteString("\n   " + strings.ReplaceAll(found.Annotations[name], "\n", "\n   "))
	}
	return b.String()
}
