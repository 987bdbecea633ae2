package redislock_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// must has the server execute a command.
// A refusal is a state in which a server rejects requests. Its errors are those of an
// acquire of a free key, and of a renewal and a release of a held one.
type refusal struct {
	begin, end              func(*teststack.RedisServer)
	acquire, renew, release error
	text                    string
}

func set(name string, value any) func(*teststack.RedisServer) {
	return func(s *teststack.RedisServer) { s.Must("config", "set", name, value) }
}

func user(rules ...any) func(*teststack.RedisServer) {
	return func(s *teststack.RedisServer) { s.Must(append([]any{"acl", "setuser", "default"}, rules...)...) }
}

func failingSave(s *teststack.RedisServer) {
	if err := os.RemoveAll(s.Dir); err != nil {
		s.TB.Fatal(err)
	}
	s.Must("config", "set", "save", "3600 1000000")
	s.Must("bgsave")
	testwait.Until(s.TB, "the save fails", func() bool {
		return strings.Contains(s.Do("info", "persistence").String(), "rdb_last_bgsave_status:err")
	})
}

func endlessScript(s *teststack.RedisServer) {
	s.Must("config", "set", "lua-time-limit", 1)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: -1})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client.Eval(context.Background(), "while true do end", nil)
	}()
	s.TB.Cleanup(func() {
		<-ended
		client.Close()
	})
	testwait.Until(s.TB, "the server is busy", func() bool {
		return redis.HasErrorPrefix(s.Do("ping").Err(), "BUSY")
	})
}

func killScript(s *teststack.RedisServer) {
	s.Must("script", "kill")
	testwait.Until(s.TB, "the script ends", func() bool { return s.Do("ping").Err() == nil })
}

var refusals = map[string]refusal{
	"out of memory": {
		begin: set("maxmemory", 1), end: set("maxmemory", 0),
		acquire: lockengine.ErrRefused, text: "OOM", // what takes no memory is done
	},
	"too few replicas": {
		begin: set("min-replicas-to-write", 1), end: set("min-replicas-to-write", 0),
		acquire: lockengine.ErrRefused, renew: lockengine.ErrRefused, release: lockengine.ErrRefused, text: "NOREPLICAS",
	},
	"can't save": {
		begin: failingSave, end: set("stop-writes-on-bgsave-error", "no"),
		acquire: lockengine.ErrRefused, renew: lockengine.ErrRefused, release: lockengine.ErrRefused, text: "MISCONF",
	},
	"busy": {
		begin: endlessScript, end: killScript,
		acquire: lockengine.ErrNotSent, renew: lockengine.ErrNotSent, release: lockengine.ErrNotSent, text: "BUSY",
	},
	"a replica": {
		begin: func(s *teststack.RedisServer) { s.Must("replicaof", "127.0.0.1", 1) }, end: func(s *teststack.RedisServer) { s.Must("replicaof", "no", "one") },
		acquire: lockengine.ErrNotSent, renew: lockengine.ErrNotSent, release: lockengine.ErrNotSent, text: "READONLY",
	},
	"no right to scripts": {
		begin: user("-eval", "-evalsha"), end: user("+@all"),
		acquire: lockengine.ErrDenied, renew: lockengine.ErrDenied, release: lockengine.ErrDenied, text: "NOPERM",
	},
	"no right to the key": {
		begin: user("resetkeys", "~app:*"), end: user("~*"),
		acquire: lockengine.ErrUnusable, renew: lockengine.ErrDenied, release: lockengine.ErrDenied, text: "NOPERM",
	},
}

// A server that refuses a request has executed nothing of it, and the error says so.
func TestAnsweredRefusals(t *testing.T) {
	t.Parallel()
	for name, f := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := teststack.StartRedis(t, teststack.Volatile)
			client := redis.NewClient(&redis.Options{Addr: s.Addr})
			defer client.Close()
			e := openOn(t, client)
			acquire(t, e, hold)
			free := lockengine.Request{Key: "free", Owner: "me:2"}

			f.begin(s)
			_, err := e.Acquire(t.Context(), free, ttl)
			wantVerdict(t, "Acquire", err, f.acquire, f.text)
			wantVerdict(t, "Probe", e.Probe(t.Context(), free.Key), f.acquire, f.text)
			wantVerdict(t, "Renew", e.Renew(t.Context(), []lockengine.Request{hold}, 2*ttl)[0], f.renew, f.text)
			wantVerdict(t, "Release", e.Release(t.Context(), hold), f.release, f.text)
			f.end(s)
			if err := e.Probe(t.Context(), free.Key); err != nil {
				t.Errorf("Probe of a server that is well again: %v", err)
			}
			if n := s.Do("exists", free.Key).Val(); n != int64(0) {
				t.Error("the refused acquire was executed")
			}
			if left := s.Do("pttl", hold.Key).Val().(int64); f.renew != nil && left > ttl.Milliseconds() {
				t.Errorf("the refused renewal was executed: %d ms left", left)
			}
			if n := s.Do("exists", hold.Key).Val(); (n == int64(1)) != (f.release != nil) {
				t.Errorf("%v locks are left, though the release ended with %v", n, f.release)
			}
		})
	}
}

// wantVerdict checks that err matches want, none if that is nil, and no other
// error that speaks of the engine or of the key.
func wantVerdict(t *testing.T, what string, err, want error, text string) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: error is %v, want it to contain %q", what, err, text)
	}
	for _, is := range []error{lockengine.ErrNotSent, lockengine.ErrRefused, lockengine.ErrNoAnswer, lockengine.ErrUnusable} {
		if errors.Is(err, is) != errors.Is(want, is) {
			t.Errorf("%s: error %v matches %q: %t", what, err, is, errors.Is(err, is))
		}
	}
	if errors.Is(err, lockengine.ErrDenied) != errors.Is(want, lockengine.ErrDenied) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

// A right that is missing in the middle of a script is found after its first write:
// nobody may conclude that nothing was executed.
func TestFailureWithinScriptIsNoRefusal(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	user("-pexpire")(s)
	_, err := openOn(t, client).Acquire(t.Context(), hold, ttl)
	wantUnclear(t, err, "command") // each version says it in its own words
	for _, is := range []error{lockengine.ErrNotSent, lockengine.ErrRefused, lockengine.ErrUnusable} {
		if errors.Is(err, is) {
			t.Errorf("error %v matches %q", err, is)
		}
	}
	if n := s.Do("exists", hold.Key).Val(); n != int64(1) {
		t.Error("the script has written nothing")
	}
}

// Servers of all versions have their own texts for a missing right, and some name the
// user. Only a right that is missing within a script leaves open what was executed.
func TestMissingRight(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		denied bool
	}{
		"to scripts": {"NOPERM this user has no permissions to run the 'evalsha' command", true},
		"to scripts, of a user named so": {
			"NOPERM User subscriptions has no permissions to run the 'evalsha' command", true},
		"within a script": {"NOPERM ACL failure in script: User default has no permissions to run the " +
			"'pexpire' command script: 1, on @user_script:5.", false},
		"within a script, without a place": {
			"NOPERM ACL failure in script: User default has no permissions to run the 'pexpire' command", false},
		"within a script, before version 7": {"ERR Error running script (call to f_1): @user_script:5: " +
			"@user_script: 5: -NOPERM The user executing the script can't run this command or subcommand", false},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			node.reply = func([]string) string { return "-" + tt.answer + "\r\n" }
			_, err := open(t, node.addr).Acquire(t.Context(), hold, ttl)
			if err == nil || errors.Is(err, lockengine.ErrDenied) != tt.denied {
				t.Errorf("error is %v, want one that matches %q: %t", err, lockengine.ErrDenied, tt.denied)
			}
			if errors.Is(err, lockengine.ErrNotSent) != tt.denied {
				t.Errorf("error %v matches %q, want that: %t", err, lockengine.ErrNotSent, tt.denied)
			}
		})
	}
}

// Something else in the place of a lock means that nobody has the lock.
func TestWrongType(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	e := openOn(t, client)
	acquire(t, e, hold)
	s.Must("set", hold.Key, "x")
	for name, request := range requests {
		wantVerdict(t, name, request(t.Context(), e), lockengine.ErrUnusable, "WRONGTYPE")
	}
}

// clients can do nothing, whatever the key, on a server with a password.
func clients(s *teststack.RedisServer) map[string]redis.UniversalClient {
	s.Must("config", "set", "requirepass", "secret")
	wrong := &redis.Options{Addr: s.Addr, Password: "guess"}
	closed := redis.NewClient(&redis.Options{Addr: s.Addr, Password: "secret"})
	_ = closed.Close()
	return map[string]redis.UniversalClient{
		"WRONGPASS": redis.NewClient(wrong),
		"NOAUTH":    redis.NewClient(&redis.Options{Addr: s.Addr}),
		"closed":    closed,
		"WRONGPASS invalid": redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{s.Addr}, Password: wrong.Password,
		}),
		"cluster support disabled": redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{s.Addr}, Password: "secret",
		}),
	}
}

// What no retry would mend is told at once, also to those who wait, and leaves
// nothing to be released.
func TestDeniedClient(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	for text, client := range clients(s) {
		t.Run(text, func(t *testing.T) {
			defer client.Close()
			e := openOn(t, client)
			for name, request := range requests {
				wantVerdict(t, name, request(t.Context(), e), lockengine.ErrDenied, text)
			}
			_, err := e.Acquire(t.Context(), unlessMarked(hold), ttl)
			wantVerdict(t, "AcquireUnlessMarked", err, lockengine.ErrDenied, text)
			_, err = openOn(t, client, redislock.Config{Replicas: 1}).Acquire(t.Context(), hold, ttl)
			wantVerdict(t, "Acquire with replicas", err, lockengine.ErrDenied, text)
			wantNothingLeft(t, e, lockengine.ErrDenied)
		})
	}
	t.Run("closed engine", func(t *testing.T) {
		e := open(t)
		if err := e.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		for name, request := range requests {
			wantVerdict(t, name, request(t.Context(), e), lockengine.ErrDenied, "closed")
		}
		wantNothingLeft(t, e, lockengine.ErrDenied)
	})
}

// wantNothingLeft checks that a Locker on e gets an error that matches want at once,
// and has nothing left to do then.
func wantNothingLeft(t *testing.T, e redislock.Engine, want error) {
	t.Helper()
	l, err := lock.New(e, lock.Config{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err = l.TryAcquire(ctx, "k")
	wantIs(t, err, want)
	if !errors.Is(want, lockengine.ErrRefused) { // that may pass
		_, err = l.Acquire(ctx, "k")
		wantIs(t, err, want)
		if ctx.Err() != nil {
			t.Fatal("Acquire has waited")
		}
	}
	if err := l.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A refused acquire leaves the Locker nothing to release.
func TestRefusedLeavesNothing(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile+"maxmemory 1\n")
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	wantNothingLeft(t, openOn(t, client), lockengine.ErrRefused)
	if stats := s.Do("info", "commandstats").String(); strings.Contains(stats, "cmdstat_hdel") {
		t.Errorf("a release was sent: %s", stats)
	}
}

// withoutTheLock starts a server on which hold was granted, and is gone.
func withoutTheLock(t *testing.T) (*teststack.RedisServer, redislock.Engine) {
	t.Helper()
	s := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { client.Close() })
	e := openOn(t, client)
	acquire(t, e, hold)
	s.Must("del", hold.Key)
	return s, e
}

// A former primary may lack a lock that the present one has. It does not say that the lock is lost.
func TestRenewAtAFormerPrimary(t *testing.T) {
	t.Parallel()
	s, e := withoutTheLock(t)
	s.Must("replicaof", "127.0.0.1", 1)
	err := e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]
	wantVerdict(t, "Renew", err, lockengine.ErrNotSent, "READONLY")
	s.Must("replicaof", "no", "one")
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0], lockengine.ErrNotHeld)
}

// A server that rejects writes knows what it has: a lock that is gone is lost.
func TestRenewAtAServerWithoutWrites(t *testing.T) {
	t.Parallel()
	s, e := withoutTheLock(t)
	s.Must("config", "set", "min-replicas-to-write", 1)
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0], lockengine.ErrNotHeld)
}
