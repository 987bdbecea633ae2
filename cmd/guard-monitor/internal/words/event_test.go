package words_test

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
)

// example returns the event of a verdict that package notify has in its testdata.
func example(tb testing.TB, verdict string) (ev notify.Event) {
	tb.Helper()
	b, err := os.ReadFile("../../../../notify/testdata/" + verdict + ".json")
	if err != nil {
		tb.Fatal(err)
	}
	if err := ev.UnmarshalJSON(b); err != nil {
		tb.Fatal(err)
	}
	return ev
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func TestEvent(t *testing.T) {
	for name, want := range map[string]string{
		"overlap": `Two callers wrote under key "order:2026-0042" at once: the database refused the write of orders (instance orders-7d9f/1) ` +
			`on table stocks (id), which expected version 7 and found 8 at 2026-11-21 09:30:07.250 UTC; it was rolled back and changed nothing. ` +
			`The lock of owner 9f6c1f0e-52d1-4c0b-9d55-0a6d3b1c7e21:1 (token 1838339483648000000) was granted at 2026-11-21 09:30:02.000 UTC for 30s, ` +
			`kept on 10.0.0.11:6379 (slot 8461), at the conflict the key was held by owner 5b0de1c2-7a34-4f7e-8a2c-1f2e3d4c5b6a:1.`,
		"lost": `The lock on key "order:2026-0042" was lost while orders (instance orders-7d9f/1) worked under it, noticed at 2026-11-21 09:30:07.250 UTC; ` +
			`it was rolled back and changed nothing. The lock of owner 9f6c1f0e-52d1-4c0b-9d55-0a6d3b1c7e21:1 (token 1838339483648000000) ` +
			`was granted at 2026-11-21 09:30:02.000 UTC for 30s, kept on 10.0.0.11:6379 (slot 8461) as shop:order:2026-0042.`,
		"unknown_commit": `Nobody knows whether the work of orders (instance orders-7d9f/1) under key "order:2026-0042" on table orders (shop_id, no) was committed: ` +
			`the database did not answer the COMMIT at 2026-11-21 09:30:07.250 UTC. The lock of owner 9f6c1f0e-52d1-4c0b-9d55-0a6d3b1c7e21:1 (token 1838339483648000000) ` +
			`was granted at 2026-11-21 09:30:02.000 UTC for 30s, kept on 10.0.0.11:6379 (slot 8461).`,
		"commit_lost": `The database lacks 12 commits of orders (instance orders-7d9f/1) that it had acknowledged ` +
			`between 2026-11-21 09:29:49.250 UTC and 2026-11-21 09:29:50.250 UTC on "10.0.0.21:5432 7396528941283746510 00000001"; ` +
			`the server is "10.0.0.22:5432 7396528941283746510 00000002" now, noticed at 2026-11-21 09:30:07.250 UTC.`,
		"dead_letter": `Message "0199a1b2-aaaa-7e5f-8a6b-7c8d9e0f1a2b" (topic "mail", stored at 2026-11-20 09:30:07.250 UTC, tried 31 times) ` +
			`of orders (instance orders-7d9f/1) was not accepted in time, and may have taken effect, noticed at 2026-11-21 09:30:07.250 UTC; ` +
			`the messages of key "order:20" wait until somebody decides.`,
		"undecided": `Nobody knows what another service has made of the request with the id "f9e8d7c6b5a493827160f5e4d3c2b1a0" (operation "pay", ` +
			`reserved at 2026-11-20 12:30:07.250 UTC, called 4 times until 2026-11-21 08:30:07.250 UTC) of orders (instance orders-7d9f/1), ` +
			`noticed at 2026-11-21 09:30:07.250 UTC; it is not called again, and waits until somebody decides.`,
		"degraded": `orders (instance orders-7d9f/1) can ask the lock again, noticed at 2026-11-21 09:30:07.250 UTC; ` +
			`without it, guarded by the database alone, first on key "order:2026-0042", operations committed: 12. ` +
			`The lock was kept on 10.0.0.11:6379 (slot 8461).`,
		"unavailable": `orders (instance orders-7d9f/1) refused 12 operations, the first at 2026-11-21 09:30:07.250 UTC on key "order:2026-0042", ` +
			`because the lock could not be acquired; nothing was changed. The lock was kept on 10.0.0.11:6379 (slot 8461).`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := words.English.Event(example(t, name)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestEventOutage: its begin and its two ends are told apart.
func TestEventOutage(t *testing.T) {
	for outcome, want := range map[notify.Outcome]string{
		notify.OutcomeUnknown: `orders (instance orders-7d9f/1) began to work without the lock at 2026-11-21 09:30:07.250 UTC because it could not be asked, ` +
			`first on key "order:2026-0042"; until it can, only the database guards the data. The lock was kept on 10.0.0.11:6379 (slot 8461).`,
		notify.OutcomeRolledBack: `orders (instance orders-7d9f/1) can ask the lock again, noticed at 2026-11-21 09:30:07.250 UTC; ` +
			`without it, first on key "order:2026-0042", operations rolled back: 1, and none is known to be committed. The lock was kept on 10.0.0.11:6379 (slot 8461).`,
	} {
		event := example(t, "degraded")
		event.Outcome, event.Count = outcome, 1
		if got := words.English.Event(event); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// A settled event says what was found out.
func TestEventSettled(t *testing.T) {
	for outcome, want := range map[notify.Outcome]string{
		notify.OutcomeCommitted:  "as was found out later, it was committed",
		notify.OutcomeRolledBack: "as was found out later, it was not committed",
	} {
		event := example(t, "unknown_commit")
		event.Outcome = outcome
		got := words.English.Event(event)
		if !strings.Contains(got, want) || !strings.Contains(got, "did not answer the COMMIT") || strings.Contains(got, "Nobody knows") {
			t.Errorf("got\n%s\nwant it to say: %s", got, want)
		}
		if zh := words.Chinese.Event(event); strings.Contains(zh, "无人知道") || !strings.Contains(zh, "事后查明") {
			t.Errorf("got\n%s", zh)
		}
	}
}

func TestEventOneRefusal(t *testing.T) {
	event := example(t, "unavailable")
	event.Count, event.Key, event.Place = 1, "", notify.Place{}
	const want = `orders (instance orders-7d9f/1) refused 1 operation at 2026-11-21 09:30:07.250 UTC, ` +
		`because the lock could not be acquired; nothing was changed.`
	if got := words.English.Event(event); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEventNamesTheHolder(t *testing.T) {
	for relation, want := range map[notify.Holder]string{
		notify.HolderSelf:    "still held by this owner",
		notify.HolderOther:   "held by another caller",
		notify.HolderNone:    "nobody held the key",
		notify.HolderUnknown: "could not be asked",
	} {
		event := example(t, "overlap")
		event.HolderAtConflict, event.HolderOwner = relation, ""
		if got := words.English.Event(event); !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", relation, got, want)
		}
	}
}

func TestEventQuotesHostileText(t *testing.T) {
	hostile := "a\x1b[2J\r\n\u202eb\x00\u009b31m\xff \u2028"
	event := notify.Event{
		ID: hostile, Service: hostile, Instance: hostile, Verdict: notify.Verdict(hostile), Outcome: notify.Outcome(hostile),
		Key: hostile, Table: hostile, Index: []string{hostile}, Owner: hostile, Place: notify.Place{Node: hostile},
		HolderAtConflict: notify.HolderOther, HolderOwner: hostile,
	}
	for _, verdict := range []notify.Verdict{notify.VerdictOverlap, notify.VerdictLost, notify.VerdictUnknownCommit, notify.VerdictDegraded, notify.VerdictUnavailable, notify.VerdictCommitLost, event.Verdict} {
		event.Verdict = verdict
		got := words.English.Event(event)
		if i := strings.IndexFunc(got, unprintable); i >= 0 {
			t.Errorf("verdict %q: unprintable character at %d of %q", verdict, i, got)
		}
		if !strings.Contains(got, `\x1b[2J`) {
			t.Errorf("verdict %q: %q does not show the escape", verdict, got)
		}
	}
}

func TestEventShortensLongText(t *testing.T) {
	event := example(t, "overlap")
	event.Key = strings.Repeat("字", 1<<20)
	for range 1000 {
		event.Index = append(event.Index, "column")
	}
	got := words.English.Event(event)
	if len(got) > 4096 || !strings.Contains(got, `字…"`) {
		t.Errorf("%d bytes: %.800s", len(got), got)
	}
}

func TestEventZeroEvent(t *testing.T) {
	if got := words.English.Event(notify.Event{}); !strings.Contains(got, "unknown verdict") {
		t.Errorf("got %q", got)
	}
}

func FuzzEvent(f *testing.F) {
	for _, verdict := range []string{"overlap", "lost", "unknown_commit", "degraded", "unavailable", "commit_lost", "dead_letter", "undecided"} {
		b, err := example(f, verdict).MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var event notify.Event
		if err := event.UnmarshalJSON(b); err != nil {
			return
		}
		if described := words.English.Event(event); strings.ContainsFunc(described, unprintable) {
			t.Fatalf("unprintable description %q", described)
		}
	})
}
