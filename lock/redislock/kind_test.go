package redislock_test

import (
	"net"
	"strings"
	"testing"

	miniserver "github.com/alicebob/miniredis/v2/server"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// TestWrongKind: who opens a server as what it is not is told at the first request what it
// is.
func TestWrongKind(t *testing.T) {
	single := teststack.StartRedis(t, teststack.Volatile)
	_, port, _ := net.SplitHostPort(single.Addr)
	sentinel := teststack.StartRedis(t, "sentinel monitor locks 127.0.0.1 "+port+" 1\n", "--sentinel")
	node := teststack.Redis(t)
	for _, tt := range []struct{ url, hint string }{
		{"redis://" + node[0], "redis+cluster://"},
		{"redis://" + sentinel.Addr, "redis+sentinel://"},
		{"redis+cluster://" + single.Addr, "redis://"},
		{"redis+cluster://" + sentinel.Addr, "redis+sentinel://"},
		{"redis+sentinel://" + sentinel.Addr + "/other", "no master of this name"},
		{"redis+sentinel://" + single.Addr + "/locks", "no Sentinel"},
		{"redis+sentinel://" + node[0] + "/locks", "no Sentinel"},
	} {
		for name, cfg := range map[string]redislock.Config{"": {}, ", replicated": {Replicas: 1}} {
			e := openURL(t, tt.url, cfg)
			refused := 0
			for _, key := range []string{"a", "b", "c", "d"} { // a node may have some of them
				_, err := e.Acquire(t.Context(), lockengine.Request{Key: key, Owner: "me:1"}, ttl)
				if err == nil {
					release(t, e, lockengine.Request{Key: key, Owner: "me:1"})
					continue
				}
				refused++
				errs := e.Renew(t.Context(), []lockengine.Request{{Key: key, Owner: "me:1"}}, ttl)
				for _, err := range []error{err, errs[0]} {
					wantIs(t, err, lockengine.ErrDenied)
					if !strings.Contains(err.Error(), tt.hint) {
						t.Errorf("%s%s: %v, want a hint of %s", tt.url, name, err, tt.hint)
					}
				}
			}
			if refused == 0 {
				t.Errorf("%s%s: nothing was refused", tt.url, name)
			}
			if err := e.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), tt.hint) {
				t.Errorf("%s%s: Ping: %v, want a hint of %s", tt.url, name, err, tt.hint)
			}
			if found := e.Diagnose(t.Context()); len(found) != 1 || found[0].Check != "redis-server" || !strings.Contains(found[0].Fix, tt.hint) {
				t.Errorf("%s%s: Diagnose: %v, want a hint of %s", tt.url, name, found, tt.hint)
			}
		}
	}
}

// TestMigrationOutsideCluster: a node of a cluster that was opened as a single server says
// that a slot migrates.
func TestMigrationOutsideCluster(t *testing.T) {
	for name, cfg := range map[string]redislock.Config{"alone": {}, "replicated": {Replicas: 1}} {
		t.Run(name, func(t *testing.T) {
			e, s := single(t, cfg)
			s.Server().SetPreHook(func(c *miniserver.Peer, cmd string, _ ...string) bool {
				if !strings.HasPrefix(cmd, "EVAL") {
					return false
				}
				c.WriteError("ASK 12 127.0.0.1:1")
				return true
			})
			_, err := e.Acquire(t.Context(), hold, ttl)
			wantIs(t, err, lockengine.ErrDenied)
			wantUnclear(t, err, "redis+cluster://")
		})
	}
}

// TestWrongKindBefore7: older servers have backticks around an unknown command.
func TestWrongKindBefore7(t *testing.T) {
	e, s := single(t)
	s.Server().SetPreHook(func(c *miniserver.Peer, cmd string, _ ...string) bool {
		if !strings.HasPrefix(cmd, "EVAL") {
			return false
		}
		c.WriteError("ERR unknown command `evalsha`, with args beginning with: ")
		return true
	})
	_, err := e.Acquire(t.Context(), hold, ttl)
	wantIs(t, err, lockengine.ErrDenied)
	wantUnclear(t, err, "redis+sentinel://")
}
