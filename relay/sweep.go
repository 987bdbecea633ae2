package relay

import (
	"time"

	"github.com/belaygo/belay/internal/message"
)

// sweeps say where the reads of lanes begin. A sweep is a read from the lowest id on. It finds all,
// and goes through the rows of parked keys: a dead letter may have very many followers. So after a
// sweep that was slow, reads go on behind the rows that it has seen, and the next sweep comes after
// a pause that is in proportion. What only sweeps find waits for that: keys whose pause is over, and
// commits that have overtaken others with lower ids.
//
// A read that goes on must not return a row if one of its key was passed over. So it returns none of
// a parked key; and when a key is no longer parked, or a row is put back, its lane waits for a sweep.
type sweeps [message.Lanes]struct {
	slow  bool
	next  time.Time // of the next sweep, if they are slow
	known bool
	after int64 // if known, what was seen
	term  int64 // of the lease at that time
}

// sweepPause is how many times as long as a slow sweep the pause behind it is.
const sweepPause = 10

// due reports whether the next read of a lane is a sweep.
func (s *sweeps) due(lane int) bool { return !s[lane].slow || !time.Now().Before(s[lane].next) }

// seen returns up to which id all rows of a lane were read, and false if that is not known.
func (s *sweeps) seen(lane int, term int64) (id int64, known bool) {
	return s[lane].after, s[lane].known && s[lane].term == term
}

// saw notes that all rows of a lane up to an id were read, but those of parked keys.
func (s *sweeps) saw(lane int, id, term int64) {
	s[lane].known, s[lane].after, s[lane].term = true, id, term
}

// forget lets a lane wait for a sweep.
func (s *sweeps) forget(lane int) { s[lane].known = false }

// hasten makes the next read of a lane a sweep.
func (s *sweeps) hasten(lane int) { s[lane].next = time.Time{} }

// ended notes how long a sweep took. After the first slow one another one notes what it has seen.
func (s *sweeps) ended(lane int, took, limit time.Duration) {
	was := s[lane].slow
	s[lane].slow, s[lane].next = took > limit, time.Time{}
	if s[lane].slow && was {
		s[lane].next = time.Now().Add(sweepPause * took)
	}
}
