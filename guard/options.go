package guard

import "time"

// An Option adjusts one Do.
type Option func(*options)

type options struct {
	wait     time.Duration
	protects []any
}

// Wait lets Do wait up to d for the lock. The default, 0, is to fail fast with
// ErrBusy.
func Wait(d time.Duration) Option {
	return func(o *options) { o.wait = d }
}

// Protects names rows that the key protects: structs, or pointers to structs,
// whose non-zero fields are the columns of a unique index or of the primary
// key. A conflict on such a row is judged; one on any other row is a business
// conflict, and comes back as a *dbguard.Conflict.
func Protects(rows ...any) Option {
	return func(o *options) { o.protects = append(o.protects, rows...) }
}
