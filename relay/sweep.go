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
type sweeps struct {
	slow  bool
	next  time.Time // of the next sweep; zero = at once
	known [message.Lanes]bool
	after [message.Lanes]int64 // if known, what was seen
	terms [message.Lanes]int64 // of the lease at that time
}

// sweepPause is how many times as long as a slow sweep the pause behind it is.
const sweepPause = 10

// due reports whether the next read is a sweep.
func (s *sweeps) due() bool { return !s.slow || !time.Now().Before(s.next) }

// forget lets a lane wait for a sweep.
func (s *sweeps) forget(lane int) { s.known[lane] = false }

// seen returns up to which id all rows of a lane were read, and false if that is not known.
func (s *sweeps) seen(lane int, term int64) (id int64, known bool) {
	return s.after[lane], s.known[lane] && s.terms[lane] == term
}

// saw notes that all rows of a lane up to an id were read, but those of parked keys.
func (s *sweeps) saw(lane int, id, term int64) {
	s.known[lane], s.after[lane], s.terms[lane] = true, id, term
}

// ended notes how long a sweep took. After the first slow one another one notes what it has seen.
func (s *sweeps) ended(took, limit time.Duration) {
	was := s.slow
	s.slow, s.next = took > limit, time.Time{}
	if s.slow && was {
		s.next = time.Now().Add(sweepPause * took)
	}
}
