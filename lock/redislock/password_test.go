package redislock_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
)

// TestPasswordIsChanged: connections that are open outlive their password, and Doctor reports that
// new ones will not be accepted. Without them requests and waits are rejected at once. A client that
// looks up its password goes on with the new one.
func TestPasswordIsChanged(t *testing.T) {
	t.Parallel()
	s := teststack.StartRedis(t, teststack.Volatile)
	s.Must("acl", "setuser", "belay", "on", ">one", "~*", "&*", "+@all")
	fixed := openURL(t, "redis://belay:one@"+s.Addr)
	var password atomic.Value
	password.Store("one")
	looks := openWith(t, &redis.UniversalOptions{Addrs: []string{s.Addr}, CredentialsProviderContext: func(context.Context) (string, string, error) {
		return "belay", password.Load().(string), nil
	}})
	other := lockengine.Request{Key: "other", Owner: "me:2"}
	acquire(t, fixed, hold)
	acquire(t, looks, other)

	s.Must("acl", "setuser", "belay", "resetpass", ">two")
	password.Store("two")
	if err := fixed.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]; err != nil {
		t.Errorf("Renew on a connection that is open: %v", err)
	}
	wantFindings(t, fixed, map[string]string{"error redis-server": "WRONGPASS"})

	s.Must("client", "kill", "user", "belay")
	wantNothingLeft(t, fixed, lockengine.ErrDenied) // after the first error, of a connection that was killed
	wantVerdict(t, "Renew", fixed.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0], lockengine.ErrDenied, "WRONGPASS")
	wantUnclear(t, fixed.Ping(t.Context()), "WRONGPASS")
	testwait.Until(t, "the one that looks has another connection", func() bool {
		return looks.Renew(t.Context(), []lockengine.Request{other}, ttl)[0] == nil
	})
	release(t, looks, other)

	s.Must("acl", "setuser", "belay", ">one") // both are valid while services are restarted
	if err := fixed.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]; err != nil {
		t.Errorf("Renew with a password that is valid again: %v", err)
	}
	release(t, fixed, hold)
}
