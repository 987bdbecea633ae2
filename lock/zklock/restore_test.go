package zklock_test

import (
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/zklock"
)

// TestRestoredFromBackup: a server is stopped, and started with older data, while a process goes on.
// The process uses it again within seconds. A lock that the backup has and that was released since
// does not come back for good. One that the backup lacks is lost, and its renewal says so.
func TestRestoredFromBackup(t *testing.T) {
	s := teststack.StartZooKeeperServer(t)
	cfg := zklock.Config{Servers: []string{s.Addr}, SessionTimeout: 30 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	e := openWith(t, cfg)
	kept := lockengine.Request{Key: "kept", Owner: "me:1"}
	before := lockengine.Request{Key: "before/a b", Owner: "me:2"}
	again := lockengine.Request{Key: "again", Owner: "me:3"}
	after := lockengine.Request{Key: "after", Owner: "me:4"}
	for _, r := range []lockengine.Request{kept, before, again} {
		acquire(t, e, r, ttl)
	}
	s.Backup()
	release(t, e, before)
	release(t, e, again)
	again.Owner = "me:5"
	acquire(t, e, again, ttl)
	acquire(t, e, after, ttl)
	for i := range 20 {
		r := lockengine.Request{Key: strconv.Itoa(i), Owner: "me:6"}
		acquire(t, e, r, ttl)
		release(t, e, r)
	}
	s.Kill()
	s.Restore()
	s.Start()

	started := time.Now()
	testwait.Until(t, "the process uses the server again", func() bool { return e.Ping(t.Context()) == nil })
	t.Logf("used again after %v", time.Since(started).Round(time.Millisecond))
	var errs []error
	testwait.Until(t, "the renewals find which locks are lost", func() bool {
		errs = e.Renew(t.Context(), []lockengine.Request{kept, after, again}, ttl)
		return errors.Is(errs[1], lockengine.ErrNotHeld) && errors.Is(errs[2], lockengine.ErrNotHeld)
	})
	wantHolder(t, e, kept.Key, map[bool]string{true: kept.Owner}[errs[0] == nil]) // its ttl may have passed
	other := openWith(t, cfg)
	for _, key := range []string{before.Key, again.Key, after.Key} {
		acquire(t, other, lockengine.Request{Key: key, Owner: "they:1"}, ttl)
	}
}
