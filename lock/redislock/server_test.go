package redislock_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// A server is a redis-server of the test's own.
type server struct {
	tb   testing.TB
	addr string
	dir  string // what it saves, and its configuration
	args []string
	cmd  *exec.Cmd
}

// startServer starts one, which ends with the test. config are lines of its
// configuration file.
func startServer(tb testing.TB, config string, args ...string) *server {
	tb.Helper()
	teststack.Redis(tb) // where there is a cluster, there is redis-server
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	dir := tb.TempDir()
	file := filepath.Join(dir, "redis.conf")
	config = fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\n%s", port, dir, config)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	s := &server{tb: tb, addr: l.Addr().String(), dir: dir, args: append([]string{file}, args...)}
	l.Close()
	s.start()
	tb.Cleanup(s.kill)
	return s
}

// start starts the server, as after kill, and waits until it answers.
func (s *server) start() {
	s.tb.Helper()
	s.cmd = exec.Command("redis-server", s.args...)
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close()
	testwait.Until(s.tb, "redis-server answers", func() bool { return client.Ping(s.tb.Context()).Err() == nil })
}

// kill ends the server at once.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) do(args ...any) *redis.Cmd {
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close()
	return client.Do(s.tb.Context(), args...)
}

const volatile = "save \"\"\nappendonly no\nrepl-diskless-sync yes\nrepl-diskless-sync-delay 0\n"

// handOver takes and releases a lock, of which a watcher hears.
func handOver(t *testing.T, e *redislock.Engine) lock.Place {
	t.Helper()
	b, _ := watch(t, e, hold.Key)
	grant := acquire(t, e, hold)
	_, err := e.Acquire(t.Context(), lock.Request{Key: hold.Key, Owner: "they:1"}, ttl)
	wantHeld(t, err, hold.Owner)
	if errs := e.Renew(t.Context(), []lock.Request{hold}, ttl); errs[0] != nil {
		t.Errorf("Renew: %v", errs[0])
	}
	release(t, e, hold)
	b.wait(t, "released")
	return grant.Place
}

func TestSingleRedis(t *testing.T) {
	s := startServer(t, volatile)
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close()
	want := lock.Place{Node: s.addr, Slot: -1}
	if place := handOver(t, openOn(t, client)); place != want {
		t.Errorf("granted at %+v, want %+v", place, want)
	}

	_, err := openOn(t, client, redislock.Config{Replicas: 1}).Acquire(t.Context(), hold, ttl)
	wantUnclear(t, err, "0 of 1 replicas")
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	on := func(dial func(*redis.FailoverOptions) redis.UniversalClient) func(*testing.T, []string, ...redislock.Config) *redislock.Engine {
		return func(t *testing.T, addrs []string, cfg ...redislock.Config) *redislock.Engine {
			client := dial(&redis.FailoverOptions{MasterName: "locks", SentinelAddrs: addrs})
			t.Cleanup(func() { _ = client.Close() })
			return openOn(t, client, cfg...)
		}
	}
	for name, open := range map[string]func(*testing.T, []string, ...redislock.Config) *redislock.Engine{
		"client":         on(func(o *redis.FailoverOptions) redis.UniversalClient { return redis.NewFailoverClient(o) }),
		"cluster client": on(func(o *redis.FailoverOptions) redis.UniversalClient { return redis.NewFailoverClusterClient(o) }),
		"own client":     openSentinel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPair(t)
			e := open(t, p.sentinels)
			place := handOver(t, e)
			if place.Slot != -1 || !strings.HasSuffix(place.Node, ":"+p.port) {
				t.Errorf("granted at %+v, want it at %s", place, p.master.addr)
			}
			replicated := open(t, p.sentinels, redislock.Config{Replicas: 1})
			if place := acquire(t, replicated, hold).Place; place.Slot != -1 || !strings.HasSuffix(place.Node, ":"+p.port) {
				t.Errorf("granted at %+v to the one with replicas, want it at %s", place, p.master.addr)
			}
			release(t, replicated, hold)

			b, _ := watch(t, e, hold.Key)
			p.master.kill()
			b.wait(t, "the master died")
			testwait.Until(t, "the replica takes over", func() bool {
				_, err := e.Acquire(t.Context(), hold, ttl)
				return err == nil
			})
			if owner := p.replica.do("hkeys", hold.Key).Val(); fmt.Sprint(owner) != "[me:1]" {
				t.Errorf("owner on the new master is %v", owner)
			}
			b, _ = watch(t, e, hold.Key)
			release(t, e, hold)
			b.wait(t, "released on the new master")
		})
	}
}

func openSentinel(t *testing.T, addrs []string, cfg ...redislock.Config) *redislock.Engine {
	return openURL(t, "redis+sentinel://"+strings.Join(addrs, ",")+"/locks", cfg...)
}

// A pair is a master and its replica under three Sentinels.
type pair struct {
	master, replica *server
	port            string // of the master
	sentinels       []string
	watchers        []*server // at these addresses
}

func startPair(t *testing.T) pair {
	t.Helper()
	master := startServer(t, volatile)
	_, port, _ := net.SplitHostPort(master.addr)
	replica := startServer(t, volatile+"replicaof 127.0.0.1 "+port+"\n")
	testwait.Until(t, "the replica follows", func() bool {
		role, err := replica.do("role").Slice()
		return err == nil && role[3] == "connected"
	})
	addrs, watchers := sentinels(t, port)
	return pair{master, replica, port, addrs, watchers}
}

// sentinels starts three that watch the master at a port, and waits until they
// know each other and its replica.
func sentinels(t *testing.T, port string) (addrs []string, all []*server) {
	t.Helper()
	for range 3 {
		s := startServer(t, "sentinel monitor locks 127.0.0.1 "+port+" 2\n"+
			"sentinel down-after-milliseconds locks 3000\nsentinel failover-timeout locks 3000\n", "--sentinel")
		addrs, all = append(addrs, s.addr), append(all, s)
	}
	for _, addr := range addrs {
		client := redis.NewSentinelClient(&redis.Options{Addr: addr})
		defer client.Close()
		testwait.Until(t, "the sentinels know each other", func() bool {
			m, err := client.Master(t.Context(), "locks").Result()
			return err == nil && m["num-slaves"] == "1" && m["num-other-sentinels"] == "2"
		})
	}
	return addrs, all
}
