package chaos_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/notify"
)

// bothKeys writes the lines of one call that had the locks on "k" and "m", by grants of its
// own, and found both gone.
func bothKeys(told *notify.Event) []line {
	return []line{
		{T: 7, At: called, Do: "a.0", Key: "k", Also: []string{"m"}},
		{T: 8, At: asked, Do: "a.0", Key: "k", Owner: "A"}, {T: 9, At: granted, Do: "a.0", Key: "k", Owner: "A", Node: "n"},
		{T: 9, At: asked, Do: "a.0", Key: "m", Owner: "M"}, {T: 10, At: granted, Do: "a.0", Key: "m", Owner: "M", Node: "o"},
		{T: 11, At: begun, Do: "a.0", Key: "k"}, {T: 12, At: wrote, Do: "a.0", Session: 7}, {T: 20, At: ended, Do: "a.0"},
		{T: 21, At: release, Do: "a.0", Key: "k", Owner: "A"}, {T: 21, At: release, Do: "a.0", Key: "m", Owner: "M"},
		{T: 22, At: released, Do: "a.0", Key: "k", Owner: "A", Result: "gone"}, {T: 22, At: released, Do: "a.0", Key: "m", Owner: "M", Result: "gone"},
		{T: 23, At: event, Do: "a.0", Key: told.Key, Event: told}, {T: 24, At: returned, Do: "a.0", Key: "k", Result: done},
	}
}

// handedFirst is bothKeys, but the lock on "k" was granted to another call, who has handed it on.
func handedFirst(told *notify.Event) []line {
	lines := append([]line{
		{T: 1, At: called, Do: "a.9", Key: "k"}, {T: 2, At: asked, Do: "a.9", Key: "k", Owner: "A"},
		{T: 3, At: granted, Do: "a.9", Key: "k", Owner: "A", Node: "n"}, {T: 4, At: begun, Do: "a.9", Key: "k"},
		{T: 5, At: wrote, Do: "a.9"}, {T: 6, At: ended, Do: "a.9"}, {T: 7, At: returned, Do: "a.9", Key: "k", Result: done},
	}, bothKeys(told)...)
	return slices.DeleteFunc(lines, func(l line) bool { return l.Do == "a.0" && l.Owner == "A" && (l.At == asked || l.At == granted) })
}

// handedOn has a story keep its lock on "k".
func handedOn(lines []line) []line {
	return slices.DeleteFunc(lines, func(l line) bool { return l.Key == "k" && (l.At == release || l.At == released) })
}

// releasedBy has another call release the locks of a story.
func releasedBy(do string, lines []line) []line {
	for i := range lines {
		if lines[i].At == release || lines[i].At == released {
			lines[i].Do = do
		}
	}
	return lines
}

// busyFor writes the lines of a call that was handed the lock on "k", and gives it back.
func busyFor(do, answer string) []line {
	return []line{
		{T: 9, At: called, Do: do, Key: "k", Also: []string{"m"}}, {T: 23, At: release, Do: do, Key: "k", Owner: "A"},
		{T: 24, At: released, Do: do, Key: "k", Owner: "A", Result: answer}, {T: 25, At: returned, Do: do, Key: "k", Result: busy},
	}
}

// repeats writes the lines of one call that repeats the request of bothKeys. If it had the locks, it wrote.
func repeats(begun_, wrote_, ended_ int64) []line {
	lines := []line{
		{T: 13, At: called, Do: "a.1", Key: "k", Also: []string{"m"}, Request: 1}, {T: begun_, At: begun, Do: "a.1", Key: "k"},
		{T: wrote_, At: wrote, Do: "a.1"}, {T: ended_, At: ended, Do: "a.1"}, {T: ended_ + 1, At: returned, Do: "a.1", Key: "k", Result: duplicate},
	}
	return slices.DeleteFunc(lines, func(l line) bool { return l.T == 0 })
}

// untold takes the events out of a story.
func untold(lines []line) []line {
	return slices.DeleteFunc(lines, func(l line) bool { return l.At == event })
}

// under has a story on another key.
func under(key string, lines []line) []line {
	for i := range lines {
		lines[i].Key = key
	}
	return lines
}

// legTales are those of calls with two keys.
func legTales() []tale {
	first := &notify.Event{Verdict: notify.VerdictLost, Key: "k", Keys: []string{"k", "m"}}
	second := &notify.Event{Verdict: notify.VerdictLost, Key: "m", Keys: []string{"k", "m"}}
	refused := &notify.Event{Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused, Key: "m", Keys: []string{"k", "m"}}
	onFirst := story("b.0", "B", 15, 27, 30, 31, "freed")
	onSecond := under("m", story("c.0", "C", 16, 28, 31, 32, "freed"))
	wipes := []fault{{wipe, "m", 13, 14}, {wipe, "k", 13, 14}}
	return []tale{
		{
			name:     "the second key of two was lost, and told",
			lines:    map[string][]line{"a": bothKeys(second), "c": onSecond},
			faults:   wipes[:1],
			overlaps: 1, reported: 1,
		},
		{
			name:     "the same, and the event names the first",
			lines:    map[string][]line{"a": bothKeys(first), "c": onSecond},
			faults:   wipes[:1],
			overlaps: 1, blind: 1, falseAlarms: 1,
		},
		{
			name:     "both keys were lost, and one is told",
			lines:    map[string][]line{"a": bothKeys(second), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name: "the same, while one without a lock on its other key looked at a request",
			lines: map[string][]line{"a": append(bothKeys(second),
				line{T: 13, At: called, Do: "a.1", Key: "r", Also: []string{"k"}}, line{T: 14, At: asked, Do: "a.1", Key: "r", Owner: "R"},
				line{T: 15, At: begun, Do: "a.1", Key: "r"}, line{T: 16, At: ended, Do: "a.1"}, line{T: 17, At: returned, Do: "a.1", Key: "r", Result: duplicate},
			), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name: "the same, while one with the same two keys looked at their request",
			lines: map[string][]line{"a": append(bothKeys(second),
				line{T: 13, At: called, Do: "a.1", Key: "k", Also: []string{"m"}, Request: 1},
				line{T: 15, At: begun, Do: "a.1", Key: "k"}, line{T: 16, At: ended, Do: "a.1"}, line{T: 17, At: returned, Do: "a.1", Key: "k", Result: duplicate},
			), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name:     "the same, while that one went on when the lock was given back",
			lines:    map[string][]line{"a": append(bothKeys(second), repeats(15, 0, 22)...), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name:     "the same, and it began behind the transaction",
			lines:    map[string][]line{"a": append(bothKeys(second), repeats(20, 0, 22)...), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name:     "the same, and nothing is told",
			lines:    map[string][]line{"a": append(untold(bothKeys(second)), repeats(15, 0, 22)...), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2,
		},
		{
			name:     "the second of two is told, and both were handed to another, who does not tell of the first",
			lines:    map[string][]line{"a": append(releasedBy("a.1", bothKeys(second)), repeats(21, 22, 23)...), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 4, reported: 2,
		},
		{
			name: "both keys were lost, and one is told, while one without a lock wrote under the first",
			lines: map[string][]line{"a": append(bothKeys(second),
				line{T: 13, At: called, Do: "a.1", Key: "k"}, line{T: 15, At: begun, Do: "a.1", Key: "k"}, line{T: 16, At: wrote, Do: "a.1"},
				line{T: 19, At: ended, Do: "a.1"}, line{T: 22, At: returned, Do: "a.1", Key: "k", Result: done},
			), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name: "the same, and that one began before the holder of the lock",
			lines: map[string][]line{"a": append([]line{
				{T: 5, At: called, Do: "a.1", Key: "k"}, {T: 10, At: begun, Do: "a.1", Key: "k"}, {T: 16, At: wrote, Do: "a.1"},
				{T: 17, At: ended, Do: "a.1"}, {T: 22, At: returned, Do: "a.1", Key: "k", Result: done},
			}, bothKeys(second)...), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name:     "both keys were lost, and the one is told that another had handed on",
			lines:    map[string][]line{"a": handedFirst(first), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name:     "the same, and the other one is told",
			lines:    map[string][]line{"a": handedFirst(second), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1,
		},
		{
			name:     "the same, which refused its row",
			lines:    map[string][]line{"a": handedFirst(refused), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1, blind: 1,
		},
		{
			name:     "the second of two is told, and the first was handed to one who never began, and does not tell of it",
			lines:    map[string][]line{"a": append(handedOn(bothKeys(second)), busyFor("a.1", "gone")...), "b": onFirst, "c": onSecond},
			faults:   wipes,
			overlaps: 2, reported: 1,
		},
		{
			name: "the lock was handed to one that has none on its other key, whose release met a dead node",
			lines: map[string][]line{"a": append(story("a.0", "A", 10, 12, 13, 0, ""), slices.Concat(
				[]line{{T: 13, At: returned, Do: "a.0", Key: "k", Result: done}}, busyFor("a.1", unanswered)[:1],
				[]line{{T: 14, At: begun, Do: "a.1", Key: "k"}, {T: 15, At: wrote, Do: "a.1"}, {T: 20, At: ended, Do: "a.1"}},
				busyFor("a.1", unanswered)[1:])...), "b": story("b.0", "B", 18, 27, 30, 31, "freed")},
			faults:   []fault{{failover, "n", 17, 17}},
			overlaps: 1, blind: 1,
		},
		{
			name:     "the first key was lost, and the lock on it was the other's alone",
			lines:    map[string][]line{"a": bothKeys(first), "b": onFirst},
			faults:   wipes[1:],
			overlaps: 1, reported: 1,
		},
	}
}

// TestConflictUnderOneKey has a call with two keys end with a conflict.
func TestConflictUnderOneKey(t *testing.T) {
	lost := &notify.Event{Verdict: notify.VerdictLost, Key: "m", Keys: []string{"k", "m"}, Count: 1}
	for _, tt := range []struct {
		name   string
		forge  func(lines []line)
		others []line
		says   string // or nothing
	}{
		{"with the holder of the second key", func([]line) {}, under("m", story("c.0", "C", 16, 18, 19, 32, "freed")), "told of a business conflict"},
		{"with nobody", func([]line) {}, nil, "a conflict with nobody"},
		{"told for a key that it did not have", func(ls []line) {
			ls[len(ls)-2].Event = &notify.Event{Verdict: notify.VerdictLost, Key: "o", Keys: lost.Keys, Count: 1}
		}, nil, "names the key o"},
		{"told without its keys", func(ls []line) {
			ls[len(ls)-2].Event = &notify.Event{Verdict: notify.VerdictLost, Key: "m", Count: 1}
		}, nil, "an event has the keys []"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := conflicted(bothKeys(lost))
			tt.forge(lines)
			h, rep := read(recordsOf(map[string][]line{"a": lines, "b": tt.others}), nil), &report{}
			overlaps := h.overlaps()
			for _, c := range h.calls {
				if c.name == "a.0" {
					checkCall(rep, h, c, overlaps)
				}
			}
			said := strings.Join(rep.failed, "\n")
			if !strings.Contains(said, tt.says) || tt.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}
