package zklock

import (
	"time"

	"github.com/belaygo/belay/lock/internal/holds"
)

// hold notes that a lock was acquired or renewed, and ends after ttl. It reports false if the
// session has ended, or may be ended by Close.
func (e *engine) hold(h holds.Hold, s *session, ttl time.Duration) bool {
	return e.holds.Add(h, ttl, func(*session) (*session, bool) { return s, !s.ended() })
}
