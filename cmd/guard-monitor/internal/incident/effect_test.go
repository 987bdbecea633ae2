package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
)

func TestEffect(t *testing.T) {
	for _, tt := range []struct {
		verdict  notify.Verdict
		outcome  notify.Outcome
		sentence string
		failures int64
	}{
		{notify.VerdictOverlap, notify.OutcomeRefused, "3 operations were rolled back and changed nothing", 3},
		{notify.VerdictLost, notify.OutcomeRolledBack, "3 operations were rolled back and changed nothing", 3},
		{notify.VerdictLost, notify.OutcomeCommitted, "3 operations were committed though their lock was lost, " +
			"and no second writer got at rows that a unique index or a version covers", 3},
		{notify.VerdictUnknownCommit, notify.OutcomeUnknown, "look at these 3 operations, which may or may not have been committed", 3},
		{notify.VerdictCommitLost, notify.OutcomeUnknown, "look at these 3 operations, which may or may not have been committed", 3},
		{notify.VerdictDeadLetter, notify.OutcomeCommitted, "", 0},
		{notify.VerdictUndecided, notify.OutcomeUnknown, "", 0},
		{notify.VerdictLost, notify.OutcomeUnknown, "look at these 3 operations, which may or may not have been committed", 3},
		{notify.VerdictUnavailable, notify.OutcomeRolledBack, "3 operations were refused and changed nothing", 0},
		{notify.VerdictDegraded, notify.OutcomeUnknown, "", 0},
		{notify.VerdictDegraded, notify.OutcomeRolledBack, "", 0},
		{notify.VerdictDegraded, notify.OutcomeCommitted, "3 operations were committed without a lock, guarded by the database alone", 0},
	} {
		e := incident.EffectOf(tt.verdict, tt.outcome, 3)
		if got := words.EffectLine(e); got != tt.sentence || e.Failures != tt.failures {
			t.Errorf("%s, %s: %q, %d failures, want %q, %d", tt.verdict, tt.outcome, got, e.Failures, tt.sentence, tt.failures)
		}
	}
}

func inDoubt(ev *notify.Event) {
	ev.Verdict, ev.Outcome, ev.HolderAtConflict, ev.Loss = notify.VerdictUnknownCommit, notify.OutcomeUnknown, "", ""
}

// A crash of the database is one incident, wherever the locks are, and not of the
// same cause as a lost lock.
func TestUnknownCommits(t *testing.T) {
	b := newBench(t)
	for n, key := range []string{"order:1", "order:2", "sku:3", "order:1"} {
		b.send(key, func(ev *notify.Event) {
			inDoubt(ev)
			ev.Place.Slot = 100 * n
			ev.AcquiredAt = ev.AcquiredAt.Add(time.Duration(n) * time.Millisecond)
		})
	}
	b.send("order:9", nil)
	b.round(0)
	list := b.incidents(2)
	i := list[0]
	if i.Cause != incident.UnknownCommit || i.Cluster != "" || i.Shard != "" || i.Place != (notify.Place{Slot: -1}) || i.Severity() != "critical" {
		t.Errorf("incident %+v", i)
	}
	if got := strings.Join(i.Effect.Doubtful, " "); got != "order:1 order:2 sku:3" || i.Effect.Unknown != 4 {
		t.Errorf("effect %+v", i.Effect)
	}
	if len(i.Evidence) != 3 || !strings.Contains(said(i.Evidence[2]), `"sku:3"`) {
		t.Errorf("evidence %+v, want a row for each key", i.Evidence)
	}
	if lost := list[1]; lost.Cause != incident.Unknown || lost.Effect.Unknown != 0 || lost.Severity() != "warning" {
		t.Errorf("the lost lock is %+v", lost)
	}
}
