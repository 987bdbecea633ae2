package lock

import "time"

const (
	MaxKeyLen      = maxKeyLen
	DefaultMaxHold = defaultMaxHold
)

// CheckKey returns an error unless key can be locked.
func CheckKey(key string) error { return checkKey(key) }

// SetClock sets the wall clock that l reads forward by step, or back. The
// monotonic clock goes on as it did.
func (l *Locker) SetClock(step time.Duration) { l.step = step }

// ID returns the first part of the owner ids of l.
func (l *Locker) ID() string { return l.id }

// Spared returns how many owners l would not release when it met their locks, as far
// as it has not forgotten them.
func (l *Locker) Spared() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.protected)
}

// Outlived is what Err does when it has seen that the deadline of l has passed.
func (l *Lease) Outlived() bool { return l.locker.expireLease(l) }
