package quorumlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// A ringer is a node that wakes its waiters under the mutex that stop takes, too.
type ringer struct {
	lockengine.Engine
	watched           chan func()
	ringing, stopping chan struct{}
	mu                sync.Mutex
}

func newRinger() *ringer {
	return &ringer{
		Engine: memlock.New(), watched: make(chan func(), 1),
		ringing: make(chan struct{}), stopping: make(chan struct{}),
	}
}

func (r *ringer) Watch(_ context.Context, _ string, wake func()) (stop func(), err error) {
	r.watched <- wake
	return func() {
		close(r.stopping)
		r.mu.Lock()
		defer r.mu.Unlock()
	}, nil
}

// ring wakes while stop waits for the mutex.
func (r *ringer) ring(wake func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.ringing)
	<-r.stopping
	wake()
}

// TestStopBesideWake: a node may wake its waiters under the mutex that ends a watch. That ends
// no less for it.
func TestStopBesideWake(t *testing.T) {
	ringers := []*ringer{newRinger(), newRinger(), newRinger()}
	e := over(t, ringers[0], ringers[1], ringers[2])
	stop, err := e.Watch(t.Context(), mine.Key, func() {})
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for _, r := range ringers {
		wake := <-r.watched
		calls.Go(func() { r.ring(wake) })
		<-r.ringing
	}
	calls.Go(stop)
	done := make(chan struct{})
	go func() {
		defer close(done)
		calls.Wait()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("stop and wake wait for each other")
	}
}
