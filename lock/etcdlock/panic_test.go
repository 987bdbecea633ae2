package etcdlock_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/etcdlock"
)

// A panicky handler panics at each record.
type panicky struct{ slog.Handler }

func (panicky) Enabled(context.Context, slog.Level) bool  { panic("a logger") }
func (panicky) Handle(context.Context, slog.Record) error { panic("a logger") }

// panicsOnce returns a function that panics the first time.
func panicsOnce() func() {
	var n atomic.Int32
	return func() {
		if n.Add(1) == 1 {
			panic("a hook")
		}
	}
}

// A lock that was not renewed is deleted, though the client's hook panics at the first try, and the
// logger at each record.
func TestPanicDuringDeletion(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	e, err := etcdlock.New(newClient(t, teststack.Etcd(t), deletions(func(context.Context) error {
		if tries.Add(1) == 1 {
			panic("a hook")
		}
		return nil
	})), etcdlock.Config{Prefix: prefix(t), Logger: slog.New(panicky{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	acquire(t, e, mine, 2*time.Second)
	testwait.Until(t, "the deletion is tried again", func() bool { return tries.Load() > 1 })
	testwait.Until(t, "it is deleted", func() bool {
		h, err := e.Inspect(t.Context(), mine.Key)
		return err == nil && h.Owner == ""
	})
}

// A watcher is a clientv3.Watcher with a hook.
type watcher struct {
	clientv3.Watcher
	hook func()
}

func (w watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	w.hook()
	return w.Watcher.Watch(ctx, key, opts...)
}

// A watch that panics ends with an error if it has not begun, and otherwise begins again.
func TestPanicOfAWatch(t *testing.T) {
	t.Parallel()
	client := newClient(t, teststack.Etcd(t))
	client.Watcher = watcher{client.Watcher, panicsOnce()}
	e, err := etcdlock.New(client, etcdlock.Config{Prefix: prefix(t), Logger: slog.New(panicky{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	if _, err := e.Watch(t.Context(), mine.Key, func() {}); err == nil {
		t.Error("Watch succeeds")
	}
	acquire(t, e, mine, ttl)
	woken, wake := make(chan struct{}, 1), panicsOnce()
	stop, err := e.Watch(t.Context(), mine.Key, func() {
		wake()
		woken <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	release(t, e, mine)
	<-woken
}
