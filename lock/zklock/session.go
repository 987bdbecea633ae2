package zklock

import (
	"slices"
	"sync"
	"time"
)

// A session is what ephemeral nodes belong to: they are deleted when it ends. The leader of the
// servers ends a session that was not used for its timeout. A follower reports only twice a tick
// which sessions were used, and not at all if it dies before. The leader knows at once of a session
// that begins or gets a new connection.
type session struct {
	id       int64 // 0 = not begun
	password string

	mu       sync.Mutex
	timeout  time.Duration // as the servers granted it
	contacts []contact     // the latest last
	over     bool
}

// A contact is a request of the session that a server has answered.
type contact struct{ sent, answered time.Time }

// These are parts of the timeout, which is three ticks or more. Together they leave three
// quarters of it for locks.
const (
	reportPart = 6  // half a tick at most, in which a follower reports to the leader
	pingPart   = 24 // between two pings
	notePart   = 48 // between two contacts that are noted
	usable     = 0.75
)

// longestTTL returns the longest ttl of a lock that the session can keep.
func (s *session) longestTTL() time.Duration { return time.Duration(usable * float64(s.granted())) }

// granted returns the session's timeout.
func (s *session) granted() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// connected notes when a connection was requested, and the session timeout that the server granted.
// The leader knows of both.
func (s *session) connected(sent time.Time, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeout = timeout
	s.contacts = []contact{{sent: sent}}
}

// heard notes an answer.
func (s *session) heard(sent, answered time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.contacts[len(s.contacts)-1].sent
	if sent.Sub(last) < s.timeout/notePart {
		return
	}
	s.contacts = append(s.contacts, contact{sent, answered})
	if old := s.contacts[0].sent; sent.Sub(old) > s.timeout {
		s.contacts = s.contacts[1:]
	}
}

// lastsUntil returns until when the session lives at least, if the leader executes a request
// that is sent now.
func (s *session) lastsUntil(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Backward(s.contacts) {
		if now.Sub(c.answered) >= s.timeout/reportPart {
			return c.sent.Add(s.timeout)
		}
	}
	return time.Time{}
}

// end notes that the servers do not have the session any more.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func (s *session) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}
