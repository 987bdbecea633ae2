package incident_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// What nobody knows does not become known by silence: such operations keep an incident open
// until somebody has settled the last of them.
func TestOperationsInDoubtStayOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.send("order:1", inDoubt)
	b.send("order:2", inDoubt)
	b.pass(11 * time.Minute)
	for _, key := range []string{"order:1", "order:2"} {
		i := b.incidents(1)[0]
		if !i.State.Open() || i.Severity() != "critical" {
			t.Fatalf("%s, %s with operations in doubt: %v", i.State, i.Severity(), i.Effect.Doubtful)
		}
		if err := b.store.Settle(t.Context(), i.ID, incident.Settlement{At: b.now, Key: key, Outcome: notify.OutcomeRolledBack, By: "alice"}); err != nil {
			t.Fatal(err)
		}
		b.round(time.Second)
	}
	if i := b.incidents(1)[0]; i.State.Open() || i.Effect.Undone != 2 || i.Severity() != "critical" { // or its alert would have other labels
		t.Errorf("%s, %s after all was settled: %+v", i.State, i.Severity(), i.Effect)
	}
}
