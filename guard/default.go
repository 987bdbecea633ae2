package guard

import (
	"context"
	"sync/atomic"
)

var defaultGuard atomic.Pointer[Guard]

// SetDefault sets the guard that the functions Do and Apply use. nil takes it away.
func SetDefault(g *Guard) { defaultGuard.Store(g) }

// Do calls Do of the default guard. Without one it returns an error.
func Do(ctx context.Context, key string, op Op, opts ...Option) error {
	g := defaultGuard.Load()
	if g == nil {
		return errNoDefault
	}
	return g.Do(ctx, key, op, opts...)
}

// Apply calls Apply of the default guard. Without one it returns an error.
func Apply(ctx context.Context, key string, change Change, opts ...Option) error {
	g := defaultGuard.Load()
	if g == nil {
		return errNoDefault
	}
	return g.Apply(ctx, key, change, opts...)
}
