package cloudevent

import (
	"math"
	"time"
)

// Writable reports whether RFC 3339 can express t in UTC.
func Writable(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 0 && year <= 9999
}

// Millis returns a duration that was read as a number of milliseconds.
func Millis(name string, n time.Duration) (time.Duration, error) {
	if n < 0 || n > math.MaxInt64/time.Millisecond {
		return 0, Invalid("%s %d is negative or too large", name, int64(n))
	}
	return n * time.Millisecond, nil //nolint:durationcheck // n is a number until here
}
