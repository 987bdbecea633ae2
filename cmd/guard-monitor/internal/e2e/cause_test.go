package e2e_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// explained waits until the monitor has put ev into an incident whose cause is
// the failover, and returns the evidence.
func (s *stage) explained(ev notify.Event) string {
	s.t.Helper()
	ctx := context.Background()
	var found incident.Incident
	testwait.Until(s.t, "the monitor explains the event", func() bool {
		received, _, err := s.events.Event(ctx, ev.ID)
		if err != nil || received.Incident == "" {
			return false
		}
		found, err = s.events.Incident(ctx, received.Incident)
		return err == nil
	})
	if found.Cause != incident.Failover || len(found.Evidence) == 0 {
		s.t.Errorf("the monitor says %s, confidence %s, %+v; want a failover with its evidence", found.Cause, found.Confidence, found.Evidence)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n   cause: %s, confidence %s", found.Cause, found.Confidence)
	for _, e := range found.Evidence {
		b.WriteString("\n   - " + words.English.Evidence(e))
	}
	return b.String()
}
