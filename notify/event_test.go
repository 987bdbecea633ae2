package notify_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/notify"
)

var update = flag.Bool("update", false, "write the example events in testdata anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// examples has one event of each verdict, by the name of its file.
func examples() map[string]notify.Event {
	at := time.Date(2026, 11, 21, 9, 30, 7, 250_000_000, time.UTC)
	base := notify.Event{
		ID:         "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b",
		Service:    "orders",
		Instance:   "orders-7d9f/1",
		Key:        "order:2026-0042",
		Owner:      "9f6c1f0e-52d1-4c0b-9d55-0a6d3b1c7e21:1",
		Token:      1795253402000000 * 1024,
		AcquiredAt: at.Add(-5250 * time.Millisecond),
		TTL:        30 * time.Second,
		Deadline:   at.Add(23750 * time.Millisecond),
		CaughtAt:   at,
		Place:      notify.Place{Node: "10.0.0.11:6379", Slot: 8461},
		Count:      1,
		TraceID:    "4bf92f3577b34da6a3ce929d0e0e4736",
		Library:    "v0.1.0",
	}
	overlap := base
	overlap.Verdict, overlap.Outcome = notify.VerdictOverlap, notify.OutcomeRefused
	overlap.Table, overlap.Index = "stocks", []string{"id"}
	overlap.Versions = &notify.Versions{Expected: 7, Found: 8}
	overlap.Trace = notify.Trace{Parent: aTraceParent, State: "vendor=00f067aa0ba902b7"}
	overlap.HolderAtConflict, overlap.HolderOwner = notify.HolderOther, "5b0de1c2-7a34-4f7e-8a2c-1f2e3d4c5b6a:1"

	lost := base
	lost.Verdict, lost.Outcome = notify.VerdictLost, notify.OutcomeRolledBack
	lost.Loss, lost.Place.Entry = notify.LossGone, "shop:order:2026-0042"

	unknown := base
	unknown.Verdict, unknown.Outcome = notify.VerdictUnknownCommit, notify.OutcomeUnknown
	unknown.Table, unknown.Index = "orders", []string{"shop_id", "no"}

	degraded := base
	degraded.Verdict, degraded.Outcome = notify.VerdictDegraded, notify.OutcomeCommitted
	degraded.Owner, degraded.Token, degraded.TTL = "", 0, 0
	degraded.AcquiredAt, degraded.Deadline = time.Time{}, time.Time{}
	degraded.Count = 12

	unavailable := degraded
	unavailable.Verdict, unavailable.Outcome = notify.VerdictUnavailable, notify.OutcomeRolledBack

	commits := unavailable
	commits.Verdict, commits.Outcome = notify.VerdictCommitLost, notify.OutcomeUnknown
	commits.Key, commits.Place, commits.TraceID = "", notify.Place{}, ""
	commits.Lost = &notify.LostCommits{
		FirstAt: at.Add(-18 * time.Second), LastAt: at.Add(-17 * time.Second),
		Server: "10.0.0.21:5432 7396528941283746510 00000001", Now: "10.0.0.22:5432 7396528941283746510 00000002",
	}

	letter := commits
	letter.Verdict, letter.Lost, letter.Count = notify.VerdictDeadLetter, nil, 1
	letter.Outcome = notify.OutcomeCommitted
	letter.Key = "order:20"
	undecided := letter
	undecided.Verdict, undecided.Outcome, undecided.Key = notify.VerdictUndecided, notify.OutcomeUnknown, "once:pay:0a1b2c3d4e5f60718293a4b5c6d7e8f9"
	undecided.Call = &notify.UndecidedCall{ID: "f9e8d7c6b5a493827160f5e4d3c2b1a0", Operation: "pay", Since: at.Add(-21 * time.Hour), Until: at.Add(-time.Hour), Tries: 4}
	letter.Message = &notify.DeadLetter{ID: "0199a1b2-aaaa-7e5f-8a6b-7c8d9e0f1a2b", Topic: "mail", StoredAt: at.Add(-24 * time.Hour), Attempts: 31, Undecided: true}

	return map[string]notify.Event{
		"dead_letter":    letter,
		"undecided":      undecided,
		"commit_lost":    commits,
		"overlap":        overlap,
		"lost":           lost,
		"unknown_commit": unknown,
		"degraded":       degraded,
		"unavailable":    unavailable,
	}
}

func TestValidate(t *testing.T) {
	valid := examples()["overlap"]
	if err := valid.Validate(); err != nil {
		t.Fatalf("a valid event: %v", err)
	}
	none := examples()["degraded"]
	none.Count = 0
	if err := none.Validate(); err != nil {
		t.Fatalf("an outage in which nothing was committed: %v", err)
	}
	for name, tc := range map[string]struct {
		spoil func(*notify.Event)
		says  string
	}{
		"no id":         {func(e *notify.Event) { e.ID = "" }, "id is empty"},
		"long id":       {func(e *notify.Event) { e.ID = strings.Repeat("a", 256) }, "255"},
		"id with space": {func(e *notify.Event) { e.ID = "a b" }, "printable ASCII"},
		"foreign id":    {func(e *notify.Event) { e.ID = "中" }, "printable ASCII"},
		"no service":    {func(e *notify.Event) { e.Service = "" }, "service"},
		"verdict":       {func(e *notify.Event) { e.Verdict = "odd" }, `verdict "odd"`},
		"outcome":       {func(e *notify.Event) { e.Outcome = "" }, `outcome ""`},
		"holder":        {func(e *notify.Event) { e.HolderAtConflict = "me" }, "holder_at_conflict"},
		"no time":       {func(e *notify.Event) { e.CaughtAt = time.Time{} }, "caught_at is missing"},
		"far time":      {func(e *notify.Event) { e.CaughtAt = time.Unix(1<<40, 0) }, "caught_at is outside"},
		"far grant":     {func(e *notify.Event) { e.AcquiredAt = time.Unix(-1<<40, 0) }, "acquired_at is outside"},
		"far loss":      {func(e *notify.Event) { e.Lost = &notify.LostCommits{LastAt: time.Unix(1<<40, 0)} }, "lost"},
		"far call":      {func(e *notify.Event) { e.Call = &notify.UndecidedCall{Until: time.Unix(1<<40, 0)} }, "call"},
		"far message":   {func(e *notify.Event) { e.Message = &notify.DeadLetter{StoredAt: time.Unix(1<<40, 0)} }, "message"},
		"ttl":           {func(e *notify.Event) { e.TTL = -1 }, "ttl"},
		"count":         {func(e *notify.Event) { e.Count = 0 }, "count"},
		"no commits":    {func(e *notify.Event) { e.Outcome, e.Count = notify.OutcomeCommitted, 0 }, "count"},
		"no rollbacks": {func(e *notify.Event) {
			e.Verdict, e.Outcome, e.Count = notify.VerdictDegraded, notify.OutcomeRolledBack, 0
		}, "count"},
		"none refused": {func(e *notify.Event) {
			e.Verdict, e.Outcome, e.Count = notify.VerdictUnavailable, notify.OutcomeRolledBack, 0
		}, "count"},
		"negative": {func(e *notify.Event) {
			e.Verdict, e.Outcome, e.Count = notify.VerdictDegraded, notify.OutcomeCommitted, -1
		}, "count"},
		"long verdict": {func(e *notify.Event) { e.Verdict = notify.Verdict(strings.Repeat("x", 1<<20)) }, "verdict"},
	} {
		t.Run(name, func(t *testing.T) {
			event := examples()["overlap"]
			tc.spoil(&event)
			err := event.Validate()
			if !errors.Is(err, notify.ErrInvalidEvent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %.300v, want ErrInvalidEvent that says %q", err, tc.says)
			}
			if len(err.Error()) > 200 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if _, err := event.MarshalJSON(); !errors.Is(err, notify.ErrInvalidEvent) {
				t.Errorf("MarshalJSON err = %.300v, want ErrInvalidEvent", err)
			}
		})
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
