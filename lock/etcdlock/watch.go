package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/wait"
)

// Watch implements lockengine.Waker. It returns when etcd notifies of all later releases.
func (e *engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(e.ctx)
	ready := make(chan error, 1)
	go func() {
		defer e.running.Done()
		defer cancel()
		e.watch(watching, key, ready, wake)
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("etcdlock: watch: %w", err)
	}
	return cancel, nil
}

// watch calls wake for each release, until ctx ends. If etcd ends the watch, or it panics, watch
// begins another one after a second, and calls wake, because it may have missed a release.
func (e *engine) watch(ctx context.Context, key string, ready chan<- error, wake func()) {
	for again := false; ; again = true {
		err := background.Do(e.cfg.Logger, "etcdlock: watch a lock", func() error {
			return e.watchOnce(ctx, key, again, ready, wake)
		})
		tell(ready, err)
		if wait.Sleep(ctx, time.Second, nil) != nil {
			return
		}
	}
}

// watchOnce is watch until etcd ends the watch. It returns why.
func (e *engine) watchOnce(ctx context.Context, key string, again bool, ready chan<- error, wake func()) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for res := range e.client.Watch(ctx, e.name(key), clientv3.WithFilterPut(), clientv3.WithCreatedNotify()) {
		switch {
		case res.Err() != nil:
			return res.Err()
		case res.Created:
			tell(ready, nil)
			if again {
				wake()
			}
		default:
			wake()
		}
	}
	return errEnded // as when the client is closed, which says nothing
}

// errEnded is returned when a watch ends before it has begun.
var errEnded = errors.New("the watch has ended")

// tell sends the first result of a watch, and drops later ones.
func tell(ready chan<- error, err error) {
	select {
	case ready <- err:
	default:
	}
}
