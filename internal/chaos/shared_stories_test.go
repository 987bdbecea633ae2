package chaos_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/notify"
)

// mate writes the lines of a call that shares the transaction of a story, which began at
// 11, and ends with a result.
func mate(do, result, id string) []line {
	return []line{
		{T: 9, At: called, Do: do, Key: "k", Combine: true}, {T: 12, At: loaded, Do: do, Version: 2},
		{T: 40, At: returned, Do: do, Key: "k", Result: result, ID: id},
	}
}

// crewStory writes a story of a call whose transaction others share. It ends at 22.
func crewStory(lines []line, others ...[]line) []line {
	lines[0].Combine = true
	for _, of := range others {
		lines = append(lines, of...)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.T - b.T) })
	return lines
}

// sharedTales are those of calls that share a transaction.
func sharedTales() []tale {
	lost := &notify.Event{Verdict: notify.VerdictLost, Count: 2}
	rival := map[string][]line{"b": story("b.0", "B", 15, 27, 30, 31, "freed")}
	with := func(lines []line) map[string][]line { return map[string][]line{"a": lines, "b": rival["b"]} }
	alone := []line{
		{T: 23, At: begun, Do: "a.1", Key: "k"}, {T: 24, At: loaded, Do: "a.1", Version: 2}, {T: 25, At: wrote, Do: "a.1"}, {T: 26, At: ended, Do: "a.1"},
	}
	wiped := []fault{{wipe, "k", 12, 13}}
	return []tale{
		{
			name:     "two share a transaction that loses its lock, and it is told once",
			lines:    with(crewStory(story("a.0", "A", 10, 14, 20, 21, "gone", lost), mate("a.1", done, ""))),
			faults:   wiped,
			overlaps: 2, reported: 2,
		},
		{
			name:     "the same, and nobody says so",
			lines:    with(crewStory(story("a.0", "A", 10, 14, 20, 21, "gone"), mate("a.1", done, ""))),
			faults:   wiped,
			overlaps: 2,
		},
		{
			name:     "the same, but they were killed",
			lines:    with(crewStory(story("a.0", "A", 10, 14, 0, 0, ""), mate("a.1", done, "")[:2])),
			faults:   append(wiped, fault{kill, "a", 28, 29}),
			overlaps: 2, blind: 2,
		},
		{
			name:     "one of them runs again alone, and says that the lock is lost",
			lines:    with(crewStory(story("a.0", "A", 10, 14, 20, 28, "gone", lost), mate("a.1", done, ""), alone)),
			faults:   wiped,
			overlaps: 2, reported: 2,
		},
		{
			name: "one of them runs again alone, by the lock of another, can't begin, and says that the lock is lost",
			lines: with(slices.Concat(
				crewStory(story("a.1", "Z", 4, 5, 6, 7, "freed"))[:7],
				story("a.0", "A", 10, 14, 20, 21, "gone"),
				[]line{{T: 23, At: event, Do: "a.1", Key: "k", Event: &notify.Event{Verdict: notify.VerdictLost, Owner: "A", Count: 1}}},
			)),
			faults:   wiped,
			overlaps: 1, reported: 1,
		},
		{
			name: "one of them came too late, and waited in vain, while the outcome of the others was unknown",
			lines: map[string][]line{
				"a": crewStory(unsure(story("a.0", "A", 10, 14, 0, 0, ""), ""), mate("a.1", "busy", "")),
				"b": story("b.0", "B", 28, 30, 31, 32, "freed"),
			},
		},
		{
			name:        "a false alarm of one whose transaction others share",
			lines:       map[string][]line{"a": crewStory(story("a.0", "A", 10, 14, 20, 21, "freed", lost), mate("a.1", done, ""))},
			falseAlarms: 1,
		},
	}
}

// wantRight fails the test if anything is said of calls of one worker that combine, while the lock is wiped
// twice.
func wantRight(t *testing.T, lines []line) {
	t.Helper()
	for i := range lines {
		lines[i].Combine = lines[i].At == called
	}
	h, rep := read(recordsOf(map[string][]line{"a": lines}), []fault{{wipe, "k", 12, 12}, {wipe, "k", 19, 19}}), &report{}
	for _, c := range h.calls {
		checkCall(rep, h, c, nil)
	}
	if len(rep.failed) > 0 {
		t.Error(strings.Join(rep.failed, "\n"))
	}
}

// TestMatesOfTwoTransactions: a crew goes on for a moment under a lock that was lost, while the next
// one has a transaction under the next lock. A mate may be of either.
func TestMatesOfTwoTransactions(t *testing.T) {
	lost := func(owner string) *notify.Event {
		return &notify.Event{Verdict: notify.VerdictLost, Outcome: notify.OutcomeRolledBack, Key: "k", Owner: owner, Count: 1}
	}
	next := story("a.5", "B", 15, 18, 22, 23, "gone", lost("B"))
	next[len(next)-1].Result = "lost"
	first := mate("a.1", "lost", "")
	first[1].T = 17 // when the next one has begun
	lines := crewStory(story("a.0", "A", 10, 0, 20, 21, "gone", lost("A")), next, first)
	wantRight(t, lines)
}

// TestMateHasTheLockOfItsLeader: a mate gets its row when another caller of its process has the next lock already.
func TestMateHasTheLockOfItsLeader(t *testing.T) {
	late := mate("a.1", done, "")
	late[1].T = 17
	next := story("a.5", "B", 15, 22, 28, 29, "freed")
	lines := crewStory(story("a.0", "A", 10, 18, 20, 21, "gone"), next, late)
	h := read(recordsOf(map[string][]line{"a": lines}), []fault{{wipe, "k", 12, 12}})
	for _, c := range h.calls {
		if c.lead != nil && (c.grant == nil || c.grant != c.lead.grant) {
			t.Errorf("%s has another lock than %s", c.name, c.lead.name)
		}
	}
	if n := len(h.overlaps()); n != 2 { // of a.5 with each of the others
		t.Errorf("%d overlaps", n)
	}
}

// TestMateThatLosesTheNextLock: a mate comes too late, after another caller has got the next lock, runs
// alone by that one, can't begin, and tells that it is lost. It is not one of those whom the event of the
// crew counts.
func TestMateThatLosesTheNextLock(t *testing.T) {
	lost := func(id, owner string) *notify.Event {
		return &notify.Event{ID: id, Verdict: notify.VerdictLost, Outcome: notify.OutcomeRolledBack, Key: "k", Owner: owner, Count: 1}
	}
	first := story("a.0", "A", 10, 0, 20, 21, "gone", lost("1", "A"))
	first[len(first)-1].Result = "lost"
	second := mate("a.1", "lost", "")
	second[1].T = 17
	second = slices.Insert(second, 2, line{T: 30, At: event, Do: "a.1", Key: "k", Event: lost("2", "B")})
	next := []line{{T: 9, At: called, Do: "a.5", Key: "k"}, {T: 13, At: asked, Do: "a.5", Key: "k", Owner: "B"}, {T: 15, At: granted, Do: "a.5", Key: "k", Owner: "B", Node: "n"}}
	lines := crewStory(first, second, next)
	wantRight(t, lines)
}

// TestLeaderBesideALateCrew: who leads a transaction reads its row after another crew of the process,
// whose lock was lost, has begun again.
func TestLeaderBesideALateCrew(t *testing.T) {
	late := story("a.0", "A", 10, 0, 20, 21, "gone")
	late = append(late, line{T: 16, At: begun, Do: "a.0", Key: "k"})
	next := append(story("a.5", "B", 14, 18, 22, 23, "gone"), line{T: 17, At: loaded, Do: "a.5", Version: 2})
	lines := crewStory(late, next)
	for i := range lines {
		lines[i].Combine = lines[i].At == called
	}
	h := read(recordsOf(map[string][]line{"a": lines}), []fault{{wipe, "k", 12, 12}, {wipe, "k", 19, 19}})
	for _, c := range h.calls {
		if c.lead != nil {
			t.Errorf("%s counts as a mate of %s", c.name, c.lead.name)
		}
	}
}

// TestCrewsAreCounted has events count those who shared a transaction.
func TestCrewsAreCounted(t *testing.T) {
	const counts = "an event counts"
	for _, tt := range []struct {
		name    string
		count   int
		outcome notify.Outcome
		result  string // of the two mates
		says    string // or nothing
	}{
		{"all", 3, notify.OutcomeCommitted, done, ""},
		{"too few", 2, notify.OutcomeCommitted, done, counts},
		{"too many", 4, notify.OutcomeCommitted, done, counts},
		{"those who ran again are not of it", 1, notify.OutcomeCommitted, "busy", ""},
		{"told, and not by the result of the mates", 3, notify.OutcomeUnknown, done, "told by the result or by an event only"},
		{"an unknown outcome that nobody told", 3, notify.OutcomeCommitted, unknown, "nobody told the unknown outcome"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lost := &notify.Event{Verdict: notify.VerdictLost, Outcome: tt.outcome, Key: "k", Count: tt.count}
			lines := crewStory(story("a.0", "A", 10, 14, 20, 21, "gone", lost), mate("a.1", tt.result, ""), mate("a.2", tt.result, ""))
			h, rep := read(recordsOf(map[string][]line{"a": lines}), nil), &report{}
			for _, c := range h.calls {
				checkCall(rep, h, c, nil)
			}
			said := strings.Join(rep.failed, "\n")
			if !strings.Contains(said, tt.says) || tt.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}
