package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/monitor/incident"
	"github.com/belaygo/belay/internal/monitor/store"
)

func TestLogs(t *testing.T) {
	s := temp(t)
	for _, n := range []store.Notification{
		{At: caught, Receiver: "ops", Incident: "a", Reason: "firing", State: incident.New, Attempts: 1},
		{At: caught.Add(time.Minute), Receiver: "ops", Incident: "a", Reason: "repeat", State: incident.Ongoing, Attempts: 5, Error: "refused"},
	} {
		if err := s.AddNotification(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.LastNotification(t.Context(), "a", "ops"); err != nil || n.Reason != "firing" || !n.At.Equal(caught) {
		t.Errorf("last notification %+v, %v, want the one that was delivered", n, err)
	}
	if _, err := s.LastNotification(t.Context(), "a", "other"); !errors.Is(err, incident.ErrNotFound) {
		t.Errorf("last notification of nobody: %v", err)
	}
	if all, err := s.Notifications(t.Context(), "a", 0); err != nil || len(all) != 2 || all[0].Error != "refused" {
		t.Errorf("notifications: %+v, %v", all, err)
	}
	line := store.AuditLine{At: caught, Who: "ann", Remote: "127.0.0.1:9", Action: "silence", Subject: "3", Detail: "drill"}
	if err := s.Audit(t.Context(), line); err != nil {
		t.Fatal(err)
	}
	line.ID = 1
	if all, err := s.AuditLines(t.Context(), 0); err != nil || len(all) != 1 || all[0] != line {
		t.Errorf("audit: %+v, %v, want %+v", all, err, line)
	}
}
