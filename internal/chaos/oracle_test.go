package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/notify"
)

// story writes the lines of one call that had the lock on key "k" by a grant of
// its own.
func story(do, owner string, granted_, wrote_, ended_, release_ int64, result string, events ...*notify.Event) []line {
	ls := []line{
		{T: granted_ - 3, At: called, Do: do, Key: "k"},
		{T: granted_ - 2, At: asked, Do: do, Key: "k", Owner: owner},
		{T: granted_, At: granted, Do: do, Key: "k", Owner: owner, Node: "n"},
		{T: granted_ + 1, At: begun, Do: do, Key: "k"},
	}
	if wrote_ > 0 {
		ls = append(ls, line{T: wrote_, At: wrote, Do: do, Session: 7})
	}
	if ended_ > 0 {
		ls = append(ls, line{T: ended_, At: ended, Do: do})
	}
	for _, e := range events {
		ls = append(ls, line{T: ended_ + 1, At: event, Do: do, Key: "k", Event: e})
	}
	if release_ > 0 {
		ls = append(ls,
			line{T: release_, At: release, Do: do, Key: "k", Owner: owner},
			line{T: release_ + 1, At: released, Do: do, Key: "k", Owner: owner, Result: result},
			line{T: release_ + 2, At: returned, Do: do, Key: "k", Result: done})
	}
	return ls
}

// overtaken writes two stories, and has the first call begin after the second one has.
func overtaken(first, second []line) []line {
	first[3].T = second[3].T + 1
	lines := slices.Concat(first, second)
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.T - b.T) })
	return lines
}

// broke gives a story another end.
func broke(lines []line) []line {
	lines[len(lines)-1].Result = failed + "invalid connection"
	return lines
}

// wasRefused gives a story the end of a call that got no lock for its last try.
func wasRefused(lines []line) []line {
	lines[len(lines)-1].Result = unavailable
	return lines
}

// askedAt gives a story another beginning.
func askedAt(at int64, lines []line) []line {
	lines[1].T = at
	return lines
}

// repeated gives a story another end.
func repeated(lines []line) []line {
	lines[len(lines)-1].Result = duplicate
	return lines
}

// conflicted gives a story another end.
func conflicted(lines []line) []line {
	lines[len(lines)-1].Result = conflict
	return lines
}

// unsure ends a story with a commit of unknown outcome, after which holder was
// found to have the lock, if anybody said so.
func unsure(lines []line, holder string) []line {
	if holder != "" {
		lines = append(lines, line{T: 22, At: inspected, Do: lines[0].Do, Key: "k", Owner: holder})
	}
	return append(lines, line{T: 23, At: returned, Do: lines[0].Do, Key: "k", Result: unknown})
}

// late writes the lines of a call that nothing was granted to, some time after at.
func late(do string, at int64) []line {
	return []line{
		{T: at + 10, At: called, Do: do, Key: "k"}, {T: at + 14, At: begun, Do: do, Key: "k"}, {T: at + 15, At: wrote, Do: do},
		{T: at + 16, At: ended, Do: do}, {T: at + 17, At: returned, Do: do, Key: "k", Result: done},
	}
}

// TestUnreported checks that events must tell of all refusals, but for those of a worker
// that was killed.
func TestUnreported(t *testing.T) {
	refusals := []line{
		{T: 1, At: called, Do: "a.0", Key: "k"}, {T: 2, At: returned, Do: "a.0", Key: "k", Result: unavailable},
		{T: 3, At: called, Do: "a.1", Key: "k"}, {T: 4, At: returned, Do: "a.1", Key: "k", Result: unavailable},
		{T: 4, At: called, Do: "a.2", Key: "k"}, // which may have been refused before the kill
	}
	killed := []fault{{kill, "a", 5, 6}}
	for _, tt := range []struct {
		told   int
		faults []fault
		want   int
	}{{2, nil, 0}, {1, nil, 1}, {3, nil, -1}, {1, killed, 0}, {3, killed, 0}, {4, killed, -1}} {
		ev := &notify.Event{Verdict: notify.VerdictUnavailable, Outcome: notify.OutcomeRolledBack, Count: tt.told}
		h := read(recordsOf(map[string][]line{"a": append(slices.Clone(refusals), line{T: 5, At: event, Key: "k", Event: ev})}), tt.faults)
		if n := h.unreported("a"); n != tt.want {
			t.Errorf("%d of 2 refusals told, faults %v: %d unreported, want %d", tt.told, tt.faults, n, tt.want)
		}
	}
}

// TestOracle checks what the chaos test rests on.
func TestOracle(t *testing.T) {
	lost := &notify.Event{Verdict: notify.VerdictLost}
	unrenewed := &notify.Event{Verdict: notify.VerdictLost, Loss: notify.LossUnrenewed}
	overlap := &notify.Event{Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused}
	handed := append(story("a.0", "A", 10, 12, 20, 0, ""),
		line{T: 21, At: called, Do: "a.1", Key: "k"}, line{T: 22, At: begun, Do: "a.1", Key: "k"},
		line{T: 23, At: wrote, Do: "a.1"}, line{T: 24, At: ended, Do: "a.1"},
		line{T: 25, At: release, Do: "a.1", Key: "k", Owner: "A"}, line{T: 25, At: event, Do: "a.1", Key: "k", Event: lost})

	mute := &notify.Event{Verdict: notify.VerdictUnknownCommit, Outcome: notify.OutcomeUnknown}
	alone := []line{ // without a lock
		{T: 12, At: called, Do: "b.0", Key: "k"}, {T: 13, At: event, Do: "b.0", Key: "k", Event: &notify.Event{Verdict: notify.VerdictDegraded}},
		{T: 14, At: begun, Do: "b.0", Key: "k"}, {T: 15, At: wrote, Do: "b.0"}, {T: 16, At: ended, Do: "b.0"},
		{T: 17, At: returned, Do: "b.0", Key: "k", Result: done},
	}

	tests := []tale{
		{
			name:  "one after the other",
			lines: map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed"), "b": story("b.0", "B", 25, 27, 30, 31, "freed")},
		},
		{
			name:     "two at a time, and nobody says so",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed"), "b": story("b.0", "B", 15, 27, 30, 31, "freed")},
			overlaps: 1,
		},
		{
			name:     "the second between the commit and the release of the first",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 20, 26, "gone"), "b": story("b.0", "B", 25, 27, 30, 31, "freed")},
			overlaps: 1,
		},
		{
			name:     "two at a time, told",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed", lost), "b": story("b.0", "B", 15, 27, 30, 31, "freed")},
			overlaps: 1, reported: 1,
		},
		{
			name:  "two at a time, of which one never wrote",
			lines: map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed"), "b": story("b.0", "B", 15, 0, 30, 31, "freed")},
		},
		{
			name: "two at a time, and the first had handed its lock to a caller that was killed before it began",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 20, 0, ""), line{T: 21, At: returned, Do: "a.0", Key: "k", Result: done}, line{T: 11, At: called, Do: "a.1", Key: "k"}),
				"b": repeated(story("b.0", "B", 15, 27, 30, 31, "freed")),
			},
			faults:   []fault{{kill, "a", 22, 23}},
			overlaps: 1, blind: 1,
		},
		{
			name: "two at a time, and the first gave its lock back, while a caller looked at its request that was killed later",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 20, 22, "gone"),
					line{T: 19, At: called, Do: "a.1", Key: "k", Request: 1}, line{T: 21, At: begun, Do: "a.1", Key: "k"}),
				"b": story("b.0", "B", 15, 27, 30, 31, "freed"),
			},
			faults:   []fault{{kill, "a", 40, 41}},
			overlaps: 1,
		},
		{
			name: "the second after a repeat that had its lock when it had rolled back",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 20, 0, ""),
					line{T: 21, At: inspected, Do: "a.0", Key: "k", Owner: "A"}, line{T: 26, At: release, Do: "a.0", Key: "k", Owner: "A"},
					line{T: 27, At: released, Do: "a.0", Key: "k", Owner: "A", Result: unanswered}, line{T: 28, At: returned, Do: "a.0", Key: "k", Result: duplicate}),
				"b": story("b.0", "B", 23, 27, 30, 31, "freed"),
			},
		},
		{
			name:     "two at a time, the release of the first unanswered",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 20, 26, unanswered), "b": story("b.0", "B", 25, 27, 30, 31, "freed")},
			faults:   []fault{{failover, "n", 24, 25}},
			overlaps: 1, blind: 1,
		},
		{
			name:     "the same, but its node lives",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 20, 26, unanswered), "b": story("b.0", "B", 25, 27, 30, 31, "freed")},
			faults:   []fault{{failover, "m", 24, 25}},
			overlaps: 1,
		},
		{
			name: "two at a time, both asked for their locks at once, and the release of one was unanswered",
			lines: map[string][]line{
				"a": story("a.0", "A", 25, 26, 30, 31, "freed"),
				"b": askedAt(24, story("b.0", "B", 27, 28, 32, 33, unanswered)),
			},
			faults:   []fault{{failover, "n", 26, 27}},
			overlaps: 1, blind: 1,
		},
		{
			name:     "two at a time, and the second was killed: the first is to say so",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 20, 26, "gone"), "b": story("b.0", "B", 25, 27, 0, 0, "")},
			faults:   []fault{{kill, "b", 28, 29}},
			overlaps: 1,
		},
		{
			name: "two at a time, and the second says only that it lost its lock, too",
			lines: map[string][]line{
				"a": story("a.0", "A", 10, 12, 20, 26, "gone"), "b": story("b.0", "B", 25, 27, 30, 31, "gone", lost),
			},
			faults:   []fault{{wipe, "k", 28, 29}},
			overlaps: 1,
		},
		{
			name:     "two at a time, and the first never returns, though nobody killed it",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 0, 0, ""), "b": story("b.0", "B", 25, 27, 30, 31, "freed")},
			overlaps: 1,
		},
		{
			name: "two at a time, handed over to one that was told that its lock is gone, the release unanswered",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 20, 0, ""), line{T: 21, At: returned, Do: "a.0", Key: "k", Result: done},
					line{T: 21, At: called, Do: "a.1", Key: "k"}, line{T: 22, At: begun, Do: "a.1", Key: "k"}, line{T: 23, At: wrote, Do: "a.1"},
					line{T: 24, At: ended, Do: "a.1"}, line{T: 25, At: inspected, Do: "a.1", Key: "k", Owner: "B"},
					line{T: 26, At: release, Do: "a.1", Key: "k", Owner: "A"}, line{T: 27, At: released, Do: "a.1", Key: "k", Owner: "A", Result: unanswered},
					line{T: 28, At: returned, Do: "a.1", Key: "k", Result: duplicate}),
				"b": story("b.0", "B", 19, 22, 23, 24, "freed"),
			},
			faults:   []fault{{failover, "n", 25, 26}},
			overlaps: 2,
		},
		{
			name: "two at a time, the first rolled back for another reason, its release unanswered",
			lines: map[string][]line{
				"a": broke(story("a.0", "A", 10, 12, 20, 26, unanswered)), "b": story("b.0", "B", 25, 27, 30, 31, "freed"),
			},
			faults:   []fault{{failover, "n", 24, 25}},
			overlaps: 1, blind: 1,
		},
		{
			name: "two at a time, the first rolled back, its release unanswered, and no lock to be had for another try",
			lines: map[string][]line{
				"a": wasRefused(story("a.0", "A", 10, 12, 20, 26, unanswered)), "b": story("b.0", "B", 25, 27, 30, 31, "freed"),
			},
			faults:   []fault{{failover, "n", 24, 25}},
			overlaps: 1, blind: 1,
		},
		{
			name: "two at a time, the first rolled back for another reason",
			lines: map[string][]line{
				"a": broke(story("a.0", "A", 10, 12, 20, 26, "freed")), "b": story("b.0", "B", 25, 27, 30, 31, "freed"),
			},
			overlaps: 1,
		},
		{
			name: "two at a time, the commit of the first unknown",
			lines: map[string][]line{
				"a": unsure(story("a.0", "A", 10, 12, 20, 0, "", mute), ""), "b": story("b.0", "B", 15, 27, 30, 31, "freed"),
			},
			faults:   []fault{{cut, "7 at 0", 19, 20}, {failover, "n", 20, 21}},
			overlaps: 1, blind: 1,
		},
		{
			name: "the same, but it never asked for its lock",
			lines: map[string][]line{
				"a": unsure(story("a.0", "A", 10, 12, 20, 0, "", mute), ""), "b": story("b.0", "B", 15, 27, 30, 31, "freed"),
			},
			faults:   []fault{{cut, "7 at 0", 19, 20}},
			overlaps: 1,
		},
		{
			name: "two at a time, the second after the first was told that it has its lock, its commit unknown",
			lines: map[string][]line{
				"a": unsure(story("a.0", "A", 10, 12, 20, 0, "", mute), "A"), "b": story("b.0", "B", 23, 27, 30, 31, "freed"),
			},
			faults: []fault{{cut, "7 at 0", 19, 20}},
		},
		{
			name: "two at a time, the commit of the first unknown, who saw that its lock was gone",
			lines: map[string][]line{
				"a": unsure(story("a.0", "A", 10, 12, 20, 0, "", mute), "B"), "b": story("b.0", "B", 15, 27, 30, 31, "freed"),
			},
			faults:   []fault{{cut, "7 at 0", 19, 20}},
			overlaps: 1,
		},
		{
			name: "one without a lock, after a lock that was abandoned and before it has expired",
			lines: map[string][]line{
				"a": append(unsure(story("a.0", "A", 10, 12, 20, 0, "", mute), ""),
					line{T: 26, At: called, Do: "a.1", Key: "k"}, line{T: 30, At: begun, Do: "a.1", Key: "k"}, line{T: 31, At: wrote, Do: "a.1"},
					line{T: 32, At: ended, Do: "a.1"}, line{T: 33, At: returned, Do: "a.1", Key: "k", Result: stale}),
				"b": story("b.0", "B", 28, 29, 34, 35, "freed"),
			},
			faults: []fault{{cut, "7 at 0", 19, 20}},
		},
		{
			name: "handed over to one whose commit is unknown, and none said that it was lost",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 20, 0, ""), line{T: 21, At: returned, Do: "a.0", Key: "k", Result: done},
					line{T: 22, At: called, Do: "a.1", Key: "k"}, line{T: 23, At: begun, Do: "a.1", Key: "k"}, line{T: 24, At: wrote, Do: "a.1", Session: 7},
					line{T: 26, At: event, Do: "a.1", Key: "k", Event: mute}, line{T: 27, At: returned, Do: "a.1", Key: "k", Result: unknown}),
				"b": story("b.0", "B", 15, 22, 23, 24, "freed"),
			},
			faults:   []fault{{cut, "7 at 0", 19, 25}, {failover, "n", 24, 25}},
			overlaps: 2, blind: 2,
		},
		{
			name:     "two at a time, the first killed",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 0, 0, ""), "b": story("b.0", "B", 25, 27, 30, 31, "freed")},
			faults:   []fault{{kill, "a", 27, 28}},
			overlaps: 1, blind: 1,
		},
		{
			name:   "the first killed before the second came",
			lines:  map[string][]line{"a": story("a.0", "A", 10, 12, 0, 0, ""), "b": story("b.0", "B", 25, 27, 30, 31, "freed")},
			faults: []fault{{kill, "a", 13, 14}},
		},
		{
			name:     "handed over, and told by the last one",
			lines:    map[string][]line{"a": handed, "b": story("b.0", "B", 15, 27, 30, 31, "freed")},
			overlaps: 2, reported: 2,
		},
		{
			name: "handed over before a pause that outlasts the lock, and told after it",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 20, 0, ""),
					line{T: 21, At: returned, Do: "a.0", Key: "k", Result: done}, line{T: 20, At: called, Do: "a.1", Key: "k"},
					line{T: int64(ttl) + 20, At: begun, Do: "a.1", Key: "k"},
					line{T: int64(ttl) + 21, At: event, Do: "a.1", Key: "k", Event: &notify.Event{Verdict: notify.VerdictLost, Owner: "A"}},
					line{T: int64(ttl) + 22, At: release, Do: "a.1", Key: "k", Owner: "A"}),
				"b": story("b.0", "B", 15, 27, 30, 31, "freed"),
			},
			faults:   []fault{{pause, "a", 22, int64(ttl) + 18}},
			overlaps: 1, reported: 1,
		},
		{
			name: "two at a time, and the second reads what the first wrote before it writes itself",
			lines: map[string][]line{
				"a": story("a.0", "A", 10, 18, 20, 22, "gone", lost), "b": story("b.0", "B", 16, 0, 21, 22, "freed", overlap),
			},
			faults:   []fault{{wipe, "k", 11, 12}},
			overlaps: 1, reported: 1,
		},
		{
			name: "the same, of one of several rows: that is a conflict, and the first says so",
			lines: map[string][]line{
				"a": story("a.0", "A", 10, 18, 20, 22, "gone", lost), "b": conflicted(story("b.0", "B", 16, 0, 21, 22, "freed")),
			},
			faults:   []fault{{wipe, "k", 11, 12}},
			overlaps: 1, reported: 1,
		},
		{
			name:     "the same, and nobody says so",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 18, 20, 22, "gone"), "b": conflicted(story("b.0", "B", 16, 0, 21, 22, "freed"))},
			faults:   []fault{{wipe, "k", 11, 12}},
			overlaps: 1,
		},
		{
			name:        "two at a time, and the second tells of what nobody wrote",
			lines:       map[string][]line{"a": story("a.0", "A", 10, 0, 20, 22, "gone"), "b": story("b.0", "B", 16, 0, 21, 22, "freed", overlap)},
			faults:      []fault{{wipe, "k", 11, 12}},
			falseAlarms: 1,
		},
		{
			name: "two at a time, and the first finds a row of long ago, but no node that it could ask for its lock",
			lines: map[string][]line{
				"a": repeated(story("a.0", "A", 10, 17, 18, 20, unanswered)), "b": repeated(story("b.0", "B", 13, 14, 15, 16, "freed")),
			},
			faults:   []fault{{wipe, "k", 11, 12}, {failover, "n", 16, 17}},
			overlaps: 1, blind: 1,
		},
		{
			name: "two at a time: the connection of the first was cut in its commit, which takes effect after the second's snapshot",
			lines: map[string][]line{
				"a": slices.Concat(story("a.0", "A", 10, 12, 0, 0, ""), []line{
					{T: 14, At: ended, Do: "a.0", Result: unanswered},
					{T: 30, At: inspected, Do: "a.0", Key: "k"}, {T: 31, At: returned, Do: "a.0", Key: "k", Result: unknown},
				}),
				"b": story("b.0", "B", 16, 18, 20, 21, "freed", overlap),
			},
			faults:   []fault{{wipe, "k", 11, 12}, {cut, "7 at 0", 13, 14}},
			overlaps: 1, reported: 1,
		},
		{
			name: "the same, and the first was killed before it could report",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 0, 0, ""), line{T: 14, At: ended, Do: "a.0", Result: unanswered}),
				"b": story("b.0", "B", 16, 18, 20, 21, "freed", overlap),
			},
			faults:   []fault{{wipe, "k", 11, 12}, {cut, "7 at 0", 13, 14}, {kill, "a", 29, 30}},
			overlaps: 1, reported: 1,
		},
		{
			name: "a commit of a worker that was killed takes effect after the next one's snapshot",
			lines: map[string][]line{
				"a": story("a.0", "A", 10, 12, 0, 0, ""), "b": story("b.0", "B", 16, 18, 20, 21, "freed", overlap),
			},
			faults: []fault{{kill, "a", 12, 13}, {wipe, "k", 13, 13}},
		},
		{
			name: "a commit without a lock and without an answer takes effect after the next one's snapshot",
			lines: map[string][]line{
				"a": {
					{T: 4, At: called, Do: "a.0", Key: "k"}, {T: 5, At: begun, Do: "a.0", Key: "k"}, {T: 6, At: wrote, Do: "a.0"},
					{T: 7, At: ended, Do: "a.0", Result: unanswered}, {T: 8, At: returned, Do: "a.0", Key: "k", Result: unknown},
				},
				"b": story("b.0", "B", 16, 18, 20, 21, "freed", overlap),
			},
			faults: []fault{{cut, "7 at 0", 6, 7}},
		},
		{
			name:  "a lease that was not renewed in time",
			lines: map[string][]line{"a": story("a.0", "A", 10, 12, int64(ttl), int64(ttl)+10, "freed", unrenewed)},
		},
		{
			name:  "the same, of one that was granted late",
			lines: map[string][]line{"a": askedAt(1, story("a.0", "A", int64(ttl)/5, int64(ttl)/4, int64(ttl), int64(ttl)+10, "freed", unrenewed))},
		},
		{
			name: "the same, by a renewal that was answered late",
			lines: map[string][]line{"a": append(story("a.0", "A", 10, 12, int64(ttl), int64(ttl)+10, "freed", unrenewed),
				line{T: int64(ttl) / 2, At: renewed, Key: "k", Owner: "A", Sent: int64(ttl) / 20})},
		},
		{
			name:        "the same, but it was renewed",
			lines:       map[string][]line{"a": append(story("a.0", "A", 10, 12, int64(ttl), int64(ttl)+10, "freed", unrenewed), line{T: int64(ttl) / 2, At: renewed, Key: "k", Owner: "A"})},
			falseAlarms: 1,
		},
		{
			name:        "a false alarm",
			lines:       map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed", lost)},
			faults:      []fault{{wipe, "another", 9, 11}, {wipe, "k", 2, 3}, {failover, "m", 1, 50}, {pause, "b", 1, 50}},
			falseAlarms: 1,
		},
		{
			name:   "an alarm about a lock that was wiped, and another call of the process has the next one before this one begins",
			lines:  map[string][]line{"a": overtaken(story("a.0", "A", 10, 0, 20, 21, "gone", &notify.Event{Verdict: notify.VerdictLost, Owner: "A"}), story("a.1", "B", 14, 17, 22, 23, "freed"))},
			faults: []fault{{wipe, "k", 11, 11}},
		},
		{
			name:   "an alarm about a lock that was wiped",
			lines:  map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed", lost)},
			faults: []fault{{wipe, "k", 9, 11}},
		},
		{
			name:   "an alarm about a lock on a node that died",
			lines:  map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed", lost)},
			faults: []fault{{failover, "n", 15, 16}},
		},
		{
			name:        "an alarm about a connection that was cut",
			lines:       map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed", lost)},
			faults:      []fault{{cut, "7 at 0", 11, 12}},
			falseAlarms: 1,
		},
		{
			name:        "a commit without an answer, though nothing was cut for long",
			lines:       map[string][]line{"a": later(2*time.Second, story("a.0", "A", 10, 12, 20, 0, "", mute))},
			faults:      []fault{{cut, "7 at 0", 2, 3}, {wipe, "k", 11, 12}},
			falseAlarms: 1,
		},
		{
			name:        "the same, but of another connection",
			lines:       map[string][]line{"a": story("a.0", "A", 10, 12, 20, 0, "", mute)},
			faults:      []fault{{cut, "8 at 0", 19, 20}},
			falseAlarms: 1,
		},
		{
			name:   "a commit without an answer",
			lines:  map[string][]line{"a": story("a.0", "A", 10, 12, 20, 0, "", mute)},
			faults: []fault{{cut, "7 at 0", 19, 20}},
		},
		{
			name: "a commit without an answer and without a lock, whose connection is cut after that is told",
			lines: map[string][]line{"a": {
				{T: 12, At: called, Do: "a.0", Key: "k"}, {T: 13, At: event, Do: "a.0", Key: "k", Event: &notify.Event{Verdict: notify.VerdictDegraded}},
				{T: 14, At: begun, Do: "a.0", Key: "k"}, {T: 15, At: wrote, Do: "a.0", Session: 7}, {T: 20, At: ended, Do: "a.0", Result: unanswered},
				{T: 21, At: event, Do: "a.0", Key: "k", Event: mute}, {T: 22, At: returned, Do: "a.0", Key: "k", Result: unknown},
			}},
			faults: []fault{{cut, "7 at 0", 18, 19}},
		},
		{
			name:     "two at a time, and only a commit without an answer is told",
			lines:    map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed", mute), "b": story("b.0", "B", 15, 27, 30, 31, "freed")},
			faults:   []fault{{cut, "7 at 0", 19, 20}},
			overlaps: 1,
		},
		{
			name:  "one with the lock, who says so, and one without",
			lines: map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed", lost), "b": alone},
		},
		{
			name: "one whose connection was cut, and later another",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 0, 0, ""), append([]line{{T: 15, At: returned, Do: "a.0", Key: "k", Result: "stale"}}, late("a.1", 10)...)...),
				"b": story("b.0", "B", 40, 42, 43, 44, "freed"),
			},
		},
		{
			name: "one that was abandoned, and long after it one without a lock",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 20, 0, ""), late("a.1", int64(ttl))...),
				"b": story("b.0", "B", int64(ttl), int64(ttl)+12, int64(ttl)+30, int64(ttl)+31, "freed"),
			},
		},
		{
			name: "one that was renewed, and long after it another",
			lines: map[string][]line{
				"a": append(append(story("a.0", "A", 10, 12, 20, 0, ""), line{T: 30, At: renewed, Key: "k", Owner: "A"}), late("a.1", int64(ttl))...),
				"b": story("b.0", "B", int64(ttl), int64(ttl)+12, int64(ttl)+30, int64(ttl)+31, "freed"),
			},
			overlaps: 1,
		},
		{
			name: "one that is refused without its lock, and the event of that, which belongs to no call",
			lines: map[string][]line{"a": append(story("a.0", "A", 10, 12, 20, 21, "freed"),
				line{T: 30, At: called, Do: "a.1", Key: "k"}, line{T: 31, At: returned, Do: "a.1", Key: "k", Result: unavailable},
				line{T: 32, At: event, Key: "k", Event: &notify.Event{Verdict: notify.VerdictUnavailable, Outcome: notify.OutcomeRolledBack, Count: 1}})},
			faults: []fault{{failover, "n", 22, 40}},
		},
		{
			name:        "an alarm of one who had no lock",
			lines:       map[string][]line{"b": append(alone, line{T: 19, At: event, Do: "b.0", Key: "k", Event: lost})},
			falseAlarms: 1,
		},
	}
	for _, tt := range slices.Concat(tests, openTales(), legTales(), sharedTales()) {
		t.Run(tt.name, func(t *testing.T) {
			h := read(recordsOf(tt.lines), tt.faults)
			overlaps := h.overlaps()
			reported, blind, falseAlarms := 0, 0, 0
			for _, o := range overlaps {
				switch {
				case o.reported():
					reported++
				case h.blindSpot(o) != nothing:
					blind++
				}
			}
			for _, c := range h.calls {
				if h.falseAlarm(c, overlaps) {
					falseAlarms++
				}
			}
			got := [4]int{len(overlaps), reported, blind, falseAlarms}
			want := [4]int{tt.overlaps, tt.reported, tt.blind, tt.falseAlarms}
			if got != want {
				t.Errorf("overlaps, reported, in blind spots, false alarms: %v, want %v", got, want)
			}
		})
	}
}
