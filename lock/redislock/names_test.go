package redislock_test

import (
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// TestHashTags: locks whose names have one hash tag are in one slot, with all that is kept
// beside them, and wake on the channels of Redisson, which has a name with a brace as it is.
func TestHashTags(t *testing.T) {
	e, c := openWith(t, options(teststack.Redis(t)...), redislock.Config{Prefix: "p:"}), cluster(t)
	tag := teststack.Key(t, "tag")
	names := []string{"{" + tag + "}:a", "b:{" + tag + "}:c"}
	want := int(c.ClusterKeySlot(t.Context(), tag).Val())
	for _, name := range names {
		h := lockengine.Request{Key: name, Owner: "me:1"}
		messages := c.SSubscribe(t.Context(), "redisson_lock__channel:p:"+name)
		defer messages.Close()
		if _, err := messages.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, _ := watch(t, e, name)
		if grant := acquire(t, e, h); grant.Slot != want {
			t.Errorf("%s: slot %d, want %d", name, grant.Slot, want)
		}
		_, err := e.Acquire(t.Context(), lockengine.Request{Key: name, Owner: "they:1", Waits: true}, ttl)
		wantHeld(t, err, h.Owner)
		line := "p:belay_line::p:" + name
		if n := c.ZCard(t.Context(), line).Val(); n != 1 {
			t.Errorf("%d engines in %s", n, line)
		}
		if err := e.Probe(t.Context(), name); err != nil {
			t.Error(err)
		}
		if err := e.Release(t.Context(), marked(h)); err != nil {
			t.Error(err)
		}
		b.wait(t, "released")
		if m, err := messages.ReceiveMessage(t.Context()); err != nil || m.Payload != "0" {
			t.Errorf("message %v, %v", m, err)
		}
		if n := c.Exists(t.Context(), "p:belay_done::p:"+name).Val(); n != 1 {
			t.Errorf("%s: no marker", name)
		}
	}
}

// TestTagIsPartOfTheName: a lock and one that has all of its name in a tag are two.
func TestTagIsPartOfTheName(t *testing.T) {
	e, _ := single(t)
	acquire(t, e, hold)
	if err := e.Release(t.Context(), marked(hold)); err != nil {
		t.Fatal(err)
	}
	tagged := lockengine.Request{Key: "{" + hold.Key + "}", Owner: "me:2"}
	if _, err := e.Acquire(t.Context(), unlessMarked(tagged), ttl); err != nil {
		t.Errorf("%s is taken for %s: %v", tagged.Key, hold.Key, err)
	}
}

// TestACL: a user with the rights that the documentation names can do all that the engine
// does, and touch nothing outside its prefix.
func TestACL(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	s.Must(documentedACL(t)...)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	e := openURL(t, "redis://belay:password@"+s.Addr, redislock.Config{Prefix: "app:"})
	other := openURL(t, "redis://belay:password@"+s.Addr, redislock.Config{Prefix: "app:"})
	if place := handOver(t, e); place.Node != s.Addr {
		t.Errorf("granted at %+v", place)
	}
	b, _ := watch(t, other, hold.Key)
	acquire(t, e, hold)
	_, err := other.Acquire(t.Context(), lockengine.Request{Key: hold.Key, Owner: "they:1", Waits: true}, ttl)
	wantHeld(t, err, hold.Owner)
	if n := client.ZCard(t.Context(), "app:belay_line:{app:k}").Val(); n != 1 {
		t.Errorf("%d engines in line", n)
	}
	if err := e.Probe(t.Context(), hold.Key); err != nil {
		t.Error(err)
	}
	if err := e.Release(t.Context(), marked(hold)); err != nil {
		t.Error(err)
	}
	b.wait(t, "released")
	if _, err := e.Acquire(t.Context(), unlessMarked(lockengine.Request{Key: hold.Key, Owner: "me:2"}), ttl); err == nil {
		t.Error("the marker is not read")
	}
	holdTracked(t, e, newLocker(t, e, lock.Config{}), "tracked")
	refused, _ := client.ACLLog(t.Context(), 10).Result()
	for _, entry := range refused {
		if !strings.HasPrefix(entry.Object, "client|") { // which names the library, from 7.2 on
			t.Errorf("refused: %+v", *entry)
		}
	}
	testwait.Until(t, "the lock is free", func() bool { return client.Exists(t.Context(), "app:k").Val() == 0 })
	wantIs(t, openURL(t, "redis://belay:password@"+s.Addr).Release(t.Context(), hold), lockengine.ErrDenied)
}

// documentedACL returns the command of the package documentation.
func documentedACL(t *testing.T) (args []any) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "//\tACL SETUSER")
	command, _, _ := strings.Cut(after, "\n//\n")
	args = []any{"ACL", "SETUSER"}
	for word := range strings.FieldsSeq(strings.ReplaceAll(command, "\n//", " ")) {
		args = append(args, word)
	}
	return args
}

// TestReadWriteLock: the key is a read-write lock of Redisson, which says so itself.
func TestReadWriteLock(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	e := openURL(t, "redis://"+s.Addr)
	s.Must("hset", "k", "mode", "read", "6f1c:52", "1")
	_, err := e.Acquire(t.Context(), hold, ttl)
	wantIs(t, err, lockengine.ErrUnusable)
	holder, err := e.Inspect(t.Context(), hold.Key)
	wantIs(t, err, lockengine.ErrUnusable)
	if holder.Owner != "" {
		t.Errorf("its holder is said to be %q", holder.Owner)
	}
}
