package redislock_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// wantFindings checks what Diagnose finds, by lines "severity check" and what these say.
func wantFindings(t *testing.T, e redislock.Engine, want map[string]string) {
	t.Helper()
	found := e.Diagnose(t.Context())
	for line, says := range want {
		if !strings.Contains(fmt.Sprint(found), line) || !strings.Contains(fmt.Sprint(found), says) {
			t.Errorf("found %v, want %s that says %q", found, line, says)
		}
	}
	for _, f := range found {
		if _, ok := want[string(f.Severity)+" "+f.Check]; !ok || f.Fix == "" || f.Subject == "" {
			t.Errorf("found %v", f)
		}
	}
}

// TestDiagnose: servers that are sound, and others with one mistake.
func TestDiagnose(t *testing.T) {
	t.Run("sound cluster", func(t *testing.T) { wantFindings(t, open(t), nil) })
	for name, tt := range map[string]struct {
		make  func(*teststack.RedisServer)
		cfg   redislock.Config
		check string
		says  string
	}{
		"sound":                 {make: func(*teststack.RedisServer) {}},
		"eviction":              {make: set("maxmemory-policy", "volatile-lru"), check: "error redis-eviction", says: "volatile-lru"},
		"no memory":             {make: set("maxmemory", 1), check: "error redis-rejects", says: "OOM"},
		"min-replicas-to-write": {make: set("min-replicas-to-write", 1), check: "error redis-rejects", says: "NOREPLICAS"},
		"Config.Replicas":       {make: func(*teststack.RedisServer) {}, cfg: redislock.Config{Replicas: 1}, check: "error redis-rejects", says: "replica"},
		"replica":               {make: func(s *teststack.RedisServer) { s.Must("replicaof", "127.0.0.1", 1) }, check: "error redis-server", says: "READONLY"},
		"no scripts":            {make: user("-eval"), check: "error redis-rights", says: "lacks +eval."},
		"no lines":              {make: user("-zadd", "-zrem"), check: "error redis-rights", says: "lacks +zadd +zrem."},
		"no subscription":       {make: user("-subscribe"), check: "error redis-rights", says: "lacks +subscribe."},
		"no channels":           {make: user("resetchannels"), check: "error redis-rights", says: "lacks &__redis__:invalidate &redisson_lock__channel:*."},
		"no tracking":           {make: user("-client|tracking"), check: "warning redis-rights", says: "lacks +client|tracking."},
		"no invalidations":      {make: user("resetchannels", "&redisson_lock__channel:*"), check: "warning redis-rights", says: "lacks &__redis__:invalidate."},
		"NoTracking":            {make: user("-client|tracking"), cfg: redislock.Config{NoTracking: true}},
		"other keys":            {make: user("resetkeys", "~order:*"), check: "warning redis-rights", says: "lacks ~*."},
		"other prefix":          {make: user("resetkeys", "~order:*"), cfg: redislock.Config{Prefix: "app:"}, check: "error redis-rights", says: "lacks ~app:*."},
		"password":              {make: set("requirepass", "other"), check: "error redis-server", says: "NOAUTH"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := teststack.StartRedis(t, teststack.Volatile)
			tt.make(s)
			want := map[string]string{tt.check: tt.says}
			if tt.check == "" {
				want = nil
			}
			if name == "replica" {
				want["warning redis-replicas"] = "not connected to its master"
			}
			wantFindings(t, openURL(t, "redis://"+s.Addr, tt.cfg), want)
		})
	}
	t.Run("no INFO", func(t *testing.T) {
		s := teststack.StartRedis(t, teststack.Volatile+"\nrename-command INFO \"\"\n")
		wantFindings(t, openURL(t, "redis://"+s.Addr), map[string]string{
			"unchecked redis-eviction": "not checked: could not read INFO: ERR unknown command",
		})
	})
	t.Run("proxy that refuses scripts", func(t *testing.T) {
		p := newProvider(t)
		p.mu.Lock()
		p.refuses = func(script string) string {
			if strings.Contains(script, "'publish'") {
				return refusedKeys
			}
			return ""
		}
		p.mu.Unlock()
		e := openURL(t, "redis://"+p.addr)
		acquire(t, e, hold)
		wantVerdict(t, "Release", e.Release(t.Context(), hold), lockengine.ErrDenied, "bad lua script")
		wantFindings(t, e, map[string]string{"error redis-scripts": "bad lua script"})
	})
	t.Run("no EVALSHA", func(t *testing.T) {
		s := teststack.StartRedis(t, teststack.Volatile+"\nrename-command EVALSHA \"\"\n")
		wantFindings(t, openURL(t, "redis://"+s.Addr), map[string]string{"error redis-scripts": "unknown command"})
	})
	t.Run("unreachable", func(t *testing.T) {
		wantFindings(t, openURL(t, "redis://127.0.0.1:1"), map[string]string{"error redis-server": "refused"})
	})
	t.Run("wrapped client", func(t *testing.T) {
		_, s := single(t)
		client := redis.NewClient(&redis.Options{Addr: s.Addr()})
		defer client.Close()
		e := openOn(t, struct{ redis.UniversalClient }{client})
		wantFindings(t, e, map[string]string{"unchecked redis-server": "by hand"})
		s.Close()
		wantFindings(t, e, map[string]string{"unchecked redis-server": "by hand", "error redis-server": "refused"})
	})
	t.Run("clock", func(t *testing.T) {
		e, s := single(t)
		s.SetTime(time.Now().Add(-time.Minute))
		wantFindings(t, e, map[string]string{"warning redis-clock": "1m0s behind", "unchecked redis-eviction": "ask the provider"})
	})
	t.Run("Sentinel", func(t *testing.T) {
		_, port := split(teststack.StartRedis(t, teststack.Volatile).Addr)
		sentinel := teststack.StartRedis(t, "sentinel monitor locks 127.0.0.1 "+port+" 1\n", "--sentinel")
		wantFindings(t, openURL(t, "redis+sentinel://"+sentinel.Addr+"/locks"), map[string]string{"warning redis-replicas": "has no replica"})
	})
}

// TestDiagnoseWithFewRights: with the documented rights the engine works. What it may not
// look at then, it says.
func TestDiagnoseWithFewRights(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	s.Must(documentedACL(t)...)
	e := openURL(t, "redis://belay:password@"+s.Addr, redislock.Config{Prefix: "app:"})
	wantFindings(t, e, map[string]string{"unchecked redis-eviction": "could not read INFO: NOPERM"})
	testwait.Until(t, "nothing is left", func() bool {
		n, err := s.Do("dbsize").Int()
		return err == nil && n == 0
	})
	for _, right := range documentedACL(t) {
		command, _ := strings.CutPrefix(right.(string), "+")
		if slices.Contains([]string{"ping", "hello", "wait", "asking", "cluster|slots", "spublish", "publish", "ssubscribe", "sunsubscribe", "unsubscribe"}, command) || command == right {
			continue // how it connects, or of another kind of server
		}
		t.Run(command, func(t *testing.T) {
			s.Must("acl", "setuser", "belay", "-"+command)
			defer s.Must("acl", "setuser", "belay", "+"+command)
			want := map[string]string{"unchecked redis-eviction": "", "error redis-rights": "+" + command}
			if strings.HasPrefix(command, "client|") { // losses are found later
				want = map[string]string{"unchecked redis-eviction": "", "warning redis-rights": "+" + command}
			}
			if command == "time" {
				want["unchecked redis-clock"] = "could not read TIME: NOPERM"
			}
			wantFindings(t, e, want)
		})
	}
}

// TestDiagnoseCluster: a cluster of its own, to which one thing after the other happens.
func TestDiagnoseCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "diagnose")
	e := openURL(t, "redis+cluster://"+strings.Join(c.Addrs, ","))
	var shard redis.ClusterShard
	testwait.Until(t, "each master has its replica", func() bool {
		shards, _ := c.client.ClusterShards(t.Context()).Result()
		if len(shards) == 3 {
			shard = shards[0]
		}
		return len(shards) == 3 && !slices.ContainsFunc(shards, func(s redis.ClusterShard) bool { return len(s.Nodes) < 2 })
	})
	node := func(role string) string {
		i := slices.IndexFunc(shard.Nodes, func(n redis.Node) bool { return n.Role == role })
		return net.JoinHostPort(shard.Nodes[i].IP, strconv.FormatInt(shard.Nodes[i].Port, 10))
	}
	master, replica := node("master"), node("replica")
	wantFindings(t, e, nil)
	all := func(setting string, value any) {
		for _, addr := range c.Addrs {
			c.must(addr, "config", "set", setting, value)
		}
	}
	all("cluster-require-full-coverage", "yes")
	wantFindings(t, e, map[string]string{"warning redis-failover": "each failover stops all shards"})
	all("cluster-require-full-coverage", "no")
	all("cluster-node-timeout", 15000)
	wantFindings(t, e, map[string]string{"warning redis-failover": "15000 ms"})
	all("cluster-node-timeout", 2000)
	all("maxmemory-policy", "allkeys-lfu")
	wantFindings(t, e, map[string]string{"error redis-eviction": "allkeys-lfu"})
	all("maxmemory-policy", "noeviction")

	c.Stack(t, "kill", c.Node(t, replica))
	testwait.Until(t, "the replica is known to be dead", func() bool {
		return !slices.ContainsFunc(c.Addrs, func(addr string) bool {
			return addr != replica && !strings.Contains(c.must(addr, "cluster", "nodes"), "slave,fail ")
		})
	})
	wantFindings(t, e, map[string]string{"warning redis-replicas": master + ": the master has no replica"})
	c.Stack(t, "heal")
	for _, addr := range c.Addrs {
		c.must(addr, "cluster", "delslots", shard.Slots[0].End)
	}
	wantFindings(t, e, map[string]string{"error redis-coverage": "16383 of 16384 slots"})

	few := func(rules ...any) {
		for _, addr := range c.Addrs {
			c.must(addr, append([]any{"acl", "setuser", "default"}, rules...)...)
		}
	}
	few("-info")
	wantFindings(t, e, map[string]string{"unchecked redis-eviction": "could not read INFO: NOPERM", "error redis-coverage": "16383 of 16384 slots"})
	few("+info", "-cluster|info", "-config|get", "-cluster|nodes")
	wantFindings(t, e, map[string]string{
		"unchecked redis-coverage": "could not read CLUSTER INFO: NOPERM", "unchecked redis-failover": "could not read CONFIG GET: NOPERM",
		"unchecked redis-replicas": "could not read CLUSTER NODES: NOPERM",
	})
}

// TestDiagnoseLeavesKeysAlone: an operation's key may have any name.
func TestDiagnoseLeavesKeysAlone(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	s.Must("set", "belay_done:{doctor0}", "1")
	wantFindings(t, openURL(t, "redis://"+s.Addr, redislock.Config{}), nil)
	if n, err := s.Do("exists", "belay_done:{doctor0}").Int(); n != 1 {
		t.Errorf("the marker of the key doctor0 is gone: %v", err)
	}
}

// TestDiagnoseLeavesNothing: whatever is forbidden, no key is left, and nothing looks like a
// deletion by hand.
func TestDiagnoseLeavesNothing(t *testing.T) {
	for name, rules := range map[string][]any{
		"all rights": {"+@all"},
		"no expiry":  {"-pexpire"},
		"no removal": {"-pexpire", "-hdel", "-zpopmin", "-zrem", "-del"},
		"no script":  {"-pexpire", "-eval", "-set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := teststack.StartRedis(t, teststack.Volatile)
			s.Must(append([]any{"acl", "setuser", "shop", "on", ">secret", "~*", "&*", "+@all"}, rules...)...)
			openURL(t, "redis://shop:secret@"+s.Addr).Diagnose(t.Context())
			testwait.Until(t, "nothing is left but what expires", func() bool {
				n, err := s.Do("dbsize").Int()
				return err == nil && n == 0
			})
			stats := s.Do("info", "commandstats").String()
			for _, removes := range []string{"del", "unlink", "getdel", "expire", "expireat", "pexpireat", "rename"} {
				if strings.Contains(stats, "cmdstat_"+removes+":calls") {
					t.Errorf("guard-monitor sees a removal by %s:\n%s", removes, stats)
				}
			}
		})
	}
}
