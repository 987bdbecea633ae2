package redislock_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
)

// asReleased is what a released version leaves in Redis for the lock on KEY of OWNER,
// and what it publishes when it frees the lock.
type asReleased struct {
	Entry   string            `json:"entry"` // a hash with a time to live
	Fields  map[string]string `json:"fields"`
	Channel string            `json:"channel"`
	Message string            `json:"message"`
	Marker  string            `json:"marker"` // a string with a time to live
	Marked  string            `json:"marked"`
}

func readReleased(t *testing.T, path string, h lockengine.Request) (r asReleased) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("KEY", h.Key, "OWNER", h.Owner).Replace(string(b))
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A lock that a released version holds excludes callers of today, and the other way
// round: instances of both run beside each other.
func TestLocksOfReleases(t *testing.T) {
	files, err := filepath.Glob("testdata/v*/lock.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Run("its lock", func(t *testing.T) { testLockOfThen(t, path) })
			t.Run("a lock of today", func(t *testing.T) { testLockOfToday(t, path) })
		})
	}
}

func testLockOfThen(t *testing.T, path string) {
	c, e := cluster(t), open(t)
	h := lockengine.Request{Key: teststack.Key(t, "then"), Owner: "they:1"}
	r := readReleased(t, path, h)
	if err := c.HSet(t.Context(), r.Entry, r.Fields).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.PExpire(t.Context(), r.Entry, ttl).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := e.Acquire(t.Context(), lockengine.Request{Key: h.Key, Owner: "me:1"}, ttl)
	if held := wantHeld(t, err, h.Owner); held.TTL <= 0 || held.TTL > ttl {
		t.Errorf("it is held for %v, want up to %v", held.TTL, ttl)
	}
	if err := e.Renew(t.Context(), []lockengine.Request{h}, 2*ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
	if err := e.Release(t.Context(), h); err != nil {
		t.Errorf("Release: %v", err)
	}
	if err := c.Set(t.Context(), r.Marker, r.Marked, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	_, err = e.Acquire(t.Context(), unlessMarked(h), ttl)
	wantIs(t, err, lockengine.ErrMarked)
}

func testLockOfToday(t *testing.T, path string) {
	c, e := cluster(t), open(t)
	h := lockengine.Request{Key: teststack.Key(t, "today"), Owner: "me:1"}
	r := readReleased(t, path, h)
	acquire(t, e, h)
	if fields, err := c.HGetAll(t.Context(), r.Entry).Result(); err != nil || !maps.Equal(fields, r.Fields) {
		t.Errorf("the lock has the fields %v, %v, want %v", fields, err, r.Fields)
	}
	if left := c.PTTL(t.Context(), r.Entry).Val(); left <= 0 || left > ttl {
		t.Errorf("the lock lives for %v, want up to %v", left, ttl)
	}
	sub := c.SSubscribe(t.Context(), r.Channel)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil { // subscribed
		t.Fatal(err)
	}
	if err := e.Release(t.Context(), marked(h)); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-sub.Channel():
		if m.Payload != r.Message {
			t.Errorf("the message is %q, want %q", m.Payload, r.Message)
		}
	case <-time.After(limit):
		t.Error("no message was published")
	}
	if v := c.Get(t.Context(), r.Marker).Val(); v != r.Marked {
		t.Errorf("the marker is %q, want %q", v, r.Marked)
	}
}
