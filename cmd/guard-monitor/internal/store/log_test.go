package store_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

func TestLogs(t *testing.T) {
	s := temp(t)
	apply(t, s, []incident.Incident{anIncident("a")})
	err := s.AddNotifications(t.Context(), []store.Notification{
		{At: caught, Receiver: "ops", Incident: "a", Reason: "firing", State: incident.New, Attempts: 1,
			Cluster: "main", Shard: "0-5460", Counts: incident.Counts{Failures: 3, Without: 2, Refused: 1}},
		{At: caught.Add(time.Minute), Receiver: "ops", Incident: "a", Reason: "repeat", State: incident.Ongoing, Attempts: 5, Error: "refused"},
	})
	if err != nil {
		t.Fatal(err)
	}
	told, err := s.Told(t.Context(), "ops", []string{"a", "b"})
	if err != nil || len(told) != 1 || told["a"].State != incident.New || told["a"].Cluster != "main" || told["a"].Shard != "0-5460" || told["a"].Counts != (incident.Counts{Failures: 3, Without: 2, Refused: 1}) || !told["a"].At.Equal(caught) {
		t.Errorf("told %+v, %v, want what was delivered last", told, err)
	}
	if told, err := s.Told(t.Context(), "other", []string{"a"}); err != nil || len(told) != 0 {
		t.Errorf("told somebody else %+v, %v", told, err)
	}
	if all, err := s.Notifications(t.Context(), "a", 0); err != nil || len(all) != 2 || all[0].Error != "refused" {
		t.Errorf("notifications: %+v, %v", all, err)
	}
	line := store.AuditLine{At: caught, Who: "ann", Remote: "127.0.0.1:9", Action: "silence", Subject: "3", Detail: "drill"}
	if err := s.Audit(t.Context(), line); err != nil {
		t.Fatal(err)
	}
	line.ID = 1
	if all, err := s.AuditLines(t.Context(), store.Page{}); err != nil || len(all) != 1 || all[0] != line {
		t.Errorf("audit: %+v, %v, want %+v", all, err, line)
	}
}
