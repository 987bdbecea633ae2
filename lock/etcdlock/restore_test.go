package etcdlock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/etcdlock"
	"github.com/belaygo/belay/lock/lockengine"
)

// TestRestoredFromBackup: all members are stopped, and started with older data, while a process goes
// on. A lock that the backup has and that was released since becomes free when its lease ends,
// though the process goes on acquiring locks. One that the backup lacks is lost, and its renewal
// says so.
func TestRestoredFromBackup(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Second
	teststack.Etcd(t) // where there is one, there may be another
	bed := teststack.StartBed(t, "etcdbackup", teststack.BedConfig{Servers: []string{"etcd"}})
	members := []string{"etcd-1", "etcd-2", "etcd-3"}
	data := filepath.Dir(bed.Logs())
	stopped := func(change func(member string) error) {
		t.Helper()
		for _, m := range members {
			bed.Stack(t, "kill", m)
		}
		for _, m := range members {
			if err := change(m); err != nil {
				t.Fatal(err)
			}
		}
		bed.Stack(t, "heal")
	}
	p := prefix(t)
	e, other := open(t, p, bed.Endpoints(t)), open(t, p, bed.Endpoints(t))
	n := 0
	cycle := func(e etcdlock.Engine) error {
		n++
		r := lockengine.Request{Key: fmt.Sprint("key", n), Owner: "me:1"}
		if _, err := e.Acquire(t.Context(), r, ttl); err != nil {
			return err
		}
		return e.Release(t.Context(), r)
	}
	works := func() bool { return cycle(e) == nil }

	before := lockengine.Request{Key: "before", Owner: "me:2"}
	acquire(t, e, before, ttl)
	stopped(func(m string) error {
		return os.CopyFS(filepath.Join(data, "backup", m), os.DirFS(filepath.Join(data, m)))
	})
	testwait.Until(t, "it works after the backup", works)
	if err := e.Release(t.Context(), before); err != nil {
		t.Log(err) // the start took longer than the ttl
	}
	for range 20 {
		testwait.Until(t, "a revision is written", works)
	}
	after := lockengine.Request{Key: "after", Owner: "me:3"}
	acquire(t, e, after, ttl)
	stopped(func(m string) error {
		if err := os.RemoveAll(filepath.Join(data, m)); err != nil {
			return err
		}
		return os.Rename(filepath.Join(data, "backup", m), filepath.Join(data, m))
	})
	started := time.Now()
	testwait.Until(t, "it works after the restore", works)
	t.Logf("used again after %v", time.Since(started).Round(time.Millisecond))
	testwait.Until(t, "the renewal finds that the lock is lost", func() bool {
		return errors.Is(e.Renew(t.Context(), []lockengine.Request{after}, ttl)[0], lockengine.ErrNotHeld)
	})
	testwait.Until(t, "the lock of the backup ends", func() bool {
		_ = cycle(e)
		_, err := other.Acquire(t.Context(), lockengine.Request{Key: before.Key, Owner: "they:1"}, ttl)
		return err == nil
	})
	t.Logf("the lock of the backup has ended after %v", time.Since(started).Round(time.Millisecond))
}
