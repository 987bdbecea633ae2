package lock_test

import (
	"context"
	"sync"

	"github.com/belaygo/belay/lock/lockengine"
)

// bells is an engine that tells waiters of releases.
type bells struct {
	*faults

	mu      sync.Mutex
	ropes   map[int]rope
	watched int // calls of Watch that succeeded
	stopped int // calls of their stop functions
	mute    bool
	watch   func(ctx context.Context, key string) error // comes before the subscription
}

type rope struct {
	key  string
	wake func()
}

func newBells() *bells { return &bells{faults: newFaults(), ropes: make(map[int]rope)} }

func (b *bells) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	b.mu.Lock()
	before := b.watch
	b.mu.Unlock()
	if before != nil {
		if err := before(ctx, key); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.watched
	b.watched++
	b.ropes[n] = rope{key, wake}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stopped++
		delete(b.ropes, n)
	}, nil
}

func (b *bells) Release(ctx context.Context, h lockengine.Request) error {
	err := b.faults.Release(ctx, h)
	if err == nil {
		b.ring(h.Key)
	}
	return err
}

func (b *bells) ring(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.ropes {
		if r.key == key && !b.mute {
			r.wake()
		}
	}
}

// watches returns how often somebody began and ended to listen.
func (b *bells) watches() (begun, ended int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watched, b.stopped
}

func (b *bells) setMute(mute bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mute = mute
}

func (b *bells) onWatch(do func(ctx context.Context, key string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch = do
}
