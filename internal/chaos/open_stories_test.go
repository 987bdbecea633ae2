package chaos_test

import (
	"slices"
	"time"

	"github.com/belaygo/belay/notify"
)

// tale is a story of several calls on key "k", and what the oracle must say of it.
type tale struct {
	name        string
	lines       map[string][]line
	faults      []fault
	overlaps    int
	reported    int
	blind       int
	falseAlarms int
}

// later writes the lines of a story that begins so much later.
func later(d time.Duration, lines []line) []line {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i].T += int64(d)
	}
	return lines
}

// doubtful writes the lines of a call whose COMMIT had no answer, and how it returned, if
// it did.
func doubtful(do, owner string, granted, returned_ int64, result string, events ...*notify.Event) []line {
	ls := append(story(do, owner, granted, granted+2, 0, 0, ""), line{T: granted + 4, At: ended, Do: do, Result: unanswered})
	for _, e := range events {
		ls = append(ls, line{T: returned_ - 1, At: event, Do: do, Key: "k", Event: e})
	}
	if returned_ > 0 {
		ls = append(ls, line{T: returned_, At: returned, Do: do, Key: "k", Result: result})
	}
	return ls
}

// reads adds to a story the version of the row that its call read.
func reads(version int64, lines []line) []line {
	i := slices.IndexFunc(lines, func(l line) bool { return l.At == wrote })
	return slices.Insert(slices.Clone(lines), i, line{T: lines[i].T, At: loaded, Do: lines[i].Do, Version: version})
}

// openTales are those of outcomes that are open: however late, and whatever Belay made of
// them, they excuse an alarm until the database has proven them.
func openTales() []tale {
	overlap := &notify.Event{Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused}
	lost := &notify.Event{Verdict: notify.VerdictLost}
	accuses := func(at time.Duration) []line { return later(at, story("b.0", "B", 10, 12, 20, 21, "freed", overlap)) }
	const long = 10 * time.Minute
	unsure := doubtful("a.0", "A", 10, 23, unknown)
	sees := line{T: int64(long / 2), At: returned, Do: "c.0", Key: "k", Result: duplicate}
	seen := []line{{T: int64(long/2) - 9, At: called, Do: "c.0", Key: "k"}, sees}
	killed := []fault{{kill, "a", 15, 16}}

	return []tale{
		{
			name: "a commit goes on after its client saw an error, and after the next one's snapshot",
			lines: map[string][]line{
				"a": doubtful("a.0", "A", 10, 60, unknown, lost),
				"b": story("b.0", "B", 21, 22, 69, 70, "freed", overlap),
			},
			faults:   []fault{{wipe, "k", 15, 16}, {cut, "7 at 0", 13, 14}},
			overlaps: 1, reported: 1,
		},
		{
			name:  "a commit of unknown outcome takes effect long after Do has returned",
			lines: map[string][]line{"a": unsure, "b": accuses(long)},
		},
		{
			name:        "the same, but another has found the row meanwhile",
			lines:       map[string][]line{"a": unsure, "b": accuses(long), "c": seen},
			falseAlarms: 1,
		},
		{
			name:        "the same, but another has inserted the row meanwhile",
			lines:       map[string][]line{"a": unsure, "b": accuses(long), "c": later(long/2, story("c.0", "C", 10, 12, 20, 21, "freed"))},
			falseAlarms: 1,
		},
		{
			name:  "the same, but the insert of the other has no answer either",
			lines: map[string][]line{"a": unsure, "b": accuses(long), "c": later(long/2, doubtful("c.0", "C", 10, 23, done))},
		},
		{
			name:        "the same, but the database was killed meanwhile",
			lines:       map[string][]line{"a": unsure, "b": accuses(long)},
			faults:      []fault{{databaseKilled, "", int64(long / 2), int64(long/2) + 1}},
			falseAlarms: 1,
		},
		{
			name:   "the same, but the database was killed before",
			lines:  map[string][]line{"a": unsure, "b": accuses(long)},
			faults: []fault{{databaseKilled, "", 1, 2}},
		},
		{
			name:  "an update of unknown outcome takes effect long after Do has returned",
			lines: map[string][]line{"a": reads(4, unsure), "b": reads(4, accuses(long)), "c": later(long/2, reads(4, story("c.0", "C", 10, 12, 20, 21, "freed")))},
		},
		{
			name:        "the same, but another has read a later version meanwhile",
			lines:       map[string][]line{"a": reads(4, unsure), "b": reads(4, accuses(long)), "c": later(long/2, reads(5, story("c.0", "C", 10, 12, 20, 21, "freed")))},
			falseAlarms: 1,
		},
		{
			name:  "a commit without an answer takes effect though Belay said that it had not",
			lines: map[string][]line{"a": doubtful("a.0", "A", 10, 23, failed+"rolled back"), "b": accuses(long)},
		},
		{
			name:  "a commit without an answer takes effect later than Belay said that it had",
			lines: map[string][]line{"a": doubtful("a.0", "A", 10, 23, done), "b": accuses(long)},
		},
		{
			name:   "a commit of a worker that was killed long ago takes effect",
			lines:  map[string][]line{"a": story("a.0", "A", 10, 12, 0, 0, ""), "b": accuses(long)},
			faults: killed,
		},
		{
			name: "the second attempt of one that was killed takes effect, its first was rolled back",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 13, 0, ""), line{T: 14, At: begun, Do: "a.0", Key: "k"}, line{T: 15, At: wrote, Do: "a.0"}),
				"b": accuses(long),
			},
			faults: killed,
		},
		{
			name: "the second attempt of one takes effect, the database was killed before it",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 13, 0, ""), line{T: 17, At: begun, Do: "a.0", Key: "k"},
					line{T: 18, At: ended, Do: "a.0", Result: unanswered}, line{T: 23, At: returned, Do: "a.0", Key: "k", Result: unknown}),
				"b": accuses(long),
			},
			faults: []fault{{databaseKilled, "", 14, 16}},
		},
		{
			name: "two at a time, the first killed in its second attempt",
			lines: map[string][]line{
				"a": append(story("a.0", "A", 10, 12, 13, 0, ""), line{T: 14, At: begun, Do: "a.0", Key: "k"}),
				"b": story("b.0", "B", 15, 17, 18, 19, "freed"),
			},
			faults:   []fault{{kill, "a", 20, 21}},
			overlaps: 1, blind: 1,
		},
		{
			name: "one that was proven hands its lock on, which is released, and is killed before it returns",
			lines: map[string][]line{
				"a": append(doubtful("a.0", "A", 10, 0, ""),
					line{T: 15, At: called, Do: "a.1", Key: "k"}, line{T: 16, At: begun, Do: "a.1", Key: "k"},
					line{T: 17, At: wrote, Do: "a.1"}, line{T: 18, At: ended, Do: "a.1"},
					line{T: 19, At: release, Do: "a.1", Key: "k", Owner: "A"}, line{T: 20, At: released, Do: "a.1", Key: "k", Owner: "A", Result: "freed"}),
				"b": story("b.0", "B", 25, 27, 30, 31, "freed"),
			},
			faults: []fault{{kill, "a", 40, 41}},
		},
		{
			name:  "a commit without a lock and of unknown outcome takes effect long after Do has returned",
			lines: map[string][]line{"a": without(unsure), "b": accuses(long)},
		},
		{
			name:        "one whose statement was cut takes no effect later: it never sent a COMMIT",
			lines:       map[string][]line{"a": append(story("a.0", "A", 10, 12, 0, 0, ""), line{T: 23, At: returned, Do: "a.0", Key: "k", Result: failed + "invalid connection"}), "b": accuses(long)},
			falseAlarms: 1,
		},
		{
			name:        "one whose ROLLBACK had no answer takes no effect later",
			lines:       map[string][]line{"a": append(story("a.0", "A", 10, 12, 14, 0, ""), line{T: 23, At: returned, Do: "a.0", Key: "k", Result: failed + "sold out"}), "b": accuses(long)},
			falseAlarms: 1,
		},
	}
}

// without takes the lock out of a story.
func without(lines []line) []line {
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool {
		return l.Owner != ""
	})
}
