package watch

import "time"

const (
	// tellEvery is the least time between two entries on evictions, RoutineEvery
	// between two on a routine, and tellExpiry between two on keys that have expired.
	// Entries are kept, and read again for each explanation.
	tellEvery    = 10 * time.Second
	RoutineEvery = 5 * time.Minute
	tellExpiry   = 10 * time.Minute
	// What was seen in this many looks within this time is routine.
	routineLooks = 5
	routineTime  = 5 * time.Minute
)

// tally counts what happens again and again, by name, between two entries on it.
type tally struct {
	counts map[string]int64 // that no entry has yet
	from   time.Time        // not before this
	told   time.Time        // when the last entry was made
	usual  bool             // that entry was on a routine
	looks  []time.Time      // the last that saw something, at most routineLooks
}

// add counts n more of name, seen in a look at a time; the look before was at
// since.
func (t *tally) add(name string, n int64, since, at time.Time) {
	if n <= 0 {
		return
	}
	if len(t.counts) == 0 {
		t.counts, t.from = make(map[string]int64), since
	}
	t.counts[name] += n
	if last := len(t.looks) - 1; last >= 0 && t.looks[last].Equal(at) {
		return
	}
	t.looks = append(t.looks, at)
	t.looks = t.looks[max(len(t.looks)-routineLooks, 0):]
}

// routine reports whether this goes on all the time.
func (t *tally) routine() bool {
	last := len(t.looks) - 1
	return last == routineLooks-1 && t.looks[last].Sub(t.looks[0]) < routineTime
}

// pause is the least time between two entries of what is rare as a rule: none,
// unless it is routine and the last entry says so.
func (t *tally) pause() time.Duration {
	if t.usual && t.routine() {
		return RoutineEvery
	}
	return 0
}

// due reports whether it is time for another entry, after a pause.
func (t *tally) due(now time.Time, pause time.Duration) bool {
	return len(t.counts) > 0 && now.Sub(t.told) >= pause
}

// take returns the counts for an entry, and since when they are.
func (t *tally) take(now time.Time) (counts map[string]int64, from time.Time) {
	counts, from = t.counts, t.from
	t.counts, t.told, t.usual = nil, now, t.routine()
	return counts, from
}
