package incident_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// Incidents end and calm down however many newer ones are open.
func TestManyOpenIncidents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.send("old", nil)
	b.round(0)
	old := b.incidents(1)[0]
	var newer []incident.Incident
	for n := range 1200 {
		i := old
		i.ID, i.Service, i.Cause = fmt.Sprintf("ffff-%04d", n), fmt.Sprint("ghost-", n), incident.HeartbeatSilent
		i.Key = incident.GroupKey(i.Service, i.Cause, "", "")
		newer = append(newer, i)
	}
	if err := b.store.Apply(t.Context(), newer, nil); err != nil {
		t.Fatal(err)
	}
	b.listening = false // or the silence of services without heartbeats would be over
	b.pass(11 * time.Minute)
	i, err := b.store.Incident(t.Context(), old.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, i, incident.Resolved)
	open, err := b.store.OpenIncidents(t.Context())
	if err != nil || len(open) != len(newer) {
		t.Errorf("%d are open, %v, want %d", len(open), err, len(newer))
	}
}

// The incidents that the store shares are not changed by what is added to a copy.
func TestMentionLeavesTheOriginal(t *testing.T) {
	t.Parallel()
	at := time.Now()
	w := incident.Switch{Service: "orders", SeenAt: at.Add(-time.Minute), Between: incident.Between{Epoch: 2, From: "redis", To: "sql"}}
	original := incident.Incident{Service: "orders", Cause: incident.Failover, FirstAt: at.Add(-time.Second), LastAt: at, Evidence: make([]incident.Evidence, 1, 8)}
	first := original
	if !first.Mention(w) || original.Evidence[:2][1].Kind != "" {
		t.Errorf("a row was added to the original: %+v", original.Evidence[:2])
	}
	second := first
	w.OverAt = at
	if !second.Mention(w) || !first.Evidence[1].To.IsZero() {
		t.Errorf("a row of the original was changed: %+v", first.Evidence)
	}
}
