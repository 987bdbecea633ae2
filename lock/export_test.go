package lock

import "time"

// SetClock sets the wall clock that l reads forward by step, or back. The
// monotonic clock goes on as it did.
func (l *Locker) SetClock(step time.Duration) { l.step = step }
