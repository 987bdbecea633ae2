package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belaygo/belay/internal/parallel"
)

// maxBundle bounds the keys of a Bundle: a caller holds the first ones while it waits for
// the others.
const maxBundle = 16

// A Bundle is the leases on several keys as one. It is safe for concurrent use.
type Bundle struct {
	leases []*Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
	stops  []func() bool
}

// AcquireAll acquires the locks on all keys, or none, and waits for them until ctx ends.
// It acquires one after the other. Every process acquires in the order of the keys'
// bytes, so no two callers wait for each other. Equal keys count once; a Bundle has at
// most 16. The error is that of Acquire for the key that was not acquired.
//
// A caller holds its first keys while it waits for the others. So a busy key delays callers
// of other keys, too. If a lock is lost before the last one is acquired, the Bundle may
// have a context that has ended.
func (l *Locker) AcquireAll(ctx context.Context, keys []string, opts ...AcquireOption) (*Bundle, error) {
	return bundle(ctx, keys, opts, l.Acquire)
}

// TryAcquireAll is AcquireAll without waiting: it returns a *HeldError at once if
// another caller has one of the keys.
func (l *Locker) TryAcquireAll(ctx context.Context, keys []string, opts ...AcquireOption) (*Bundle, error) {
	return bundle(ctx, keys, opts, l.TryAcquire)
}

type acquireFunc func(context.Context, string, ...AcquireOption) (*Lease, error)

func bundle(ctx context.Context, keys []string, opts []AcquireOption, acquire acquireFunc) (*Bundle, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("%w: no key", ErrInvalidKey)
	case len(keys) > maxBundle:
		return nil, fmt.Errorf("%w: %d keys, at most %d are allowed", ErrInvalidKey, len(keys), maxBundle)
	}
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return nil, err
		}
	}
	b := new(Bundle)
	defer func() { // also if an engine panics
		if b.ctx == nil {
			_ = b.releaseAll(ctx)
		}
	}()
	for _, key := range keys {
		lease, err := b.next(ctx, key, opts, acquire)
		if err != nil {
			return nil, err
		}
		b.leases = append(b.leases, lease)
	}
	b.join(ctx)
	return b, nil
}

// next acquires another key. The wait for it ends when one of the leases so far does.
func (b *Bundle) next(ctx context.Context, key string, opts []AcquireOption, acquire acquireFunc) (*Lease, error) {
	if len(b.leases) == 0 {
		return acquire(ctx, key, opts...)
	}
	waited, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, lease := range b.leases {
		defer context.AfterFunc(lease.ctx, cancel)()
	}
	lease, err := acquire(waited, key, opts...)
	if lapse := b.Err(); err != nil && lapse != nil {
		return nil, lapse
	}
	return lease, err
}

// join makes the context of all leases.
func (b *Bundle) join(ctx context.Context) {
	ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, lease := range b.leases {
		ended := lease.ctx
		b.stops = append(b.stops, context.AfterFunc(ended, func() { b.cancel(context.Cause(ended)) }))
		ctx = leaseContext{ctx, lease} //nolint:fatcontext // it carries them all
	}
	b.ctx = ctx
}

// Leases returns the leases, in the order of their keys.
func (b *Bundle) Leases() []*Lease { return slices.Clone(b.leases) }

// Context returns a context that ends with the first lease that ends, and has its
// cause. An Acquire of one of the keys by the same Locker with this context is granted
// at once: see Locker.Acquire.
func (b *Bundle) Context() context.Context { return b.ctx }

// Err returns the error of the first lease that is no longer believed in: see Lease.Err.
func (b *Bundle) Err() error {
	for _, lease := range b.leases {
		if err := lease.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Release releases all leases at once. It returns their errors: see Lease.Release.
func (b *Bundle) Release(ctx context.Context) error {
	for _, stop := range b.stops {
		stop()
	}
	b.cancel(ErrNotHeld)
	return b.releaseAll(ctx)
}

func (b *Bundle) releaseAll(ctx context.Context) error {
	errs := make([]error, len(b.leases))
	parallel.Do(len(errs), func(i int) { errs[i] = b.leases[i].Release(ctx) })
	return errors.Join(errs...)
}
