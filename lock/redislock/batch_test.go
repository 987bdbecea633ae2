package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

const crowd = 200 // enough that requests are sent together

// together runs n calls of request at the same time.
func together(n int, request func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { request(i) })
	}
	wg.Wait()
}

func TestCrowd(t *testing.T) {
	e := open(t)
	shards, err := cluster(t).ClusterShards(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	prefix := teststack.Key(t, "crowd")
	together(crowd, func(i int) {
		h := lockengine.Request{Key: fmt.Sprint(prefix, i), Owner: "me:1"}
		grant, err := e.Acquire(t.Context(), h, ttl)
		for errors.Is(err, lockengine.ErrNotSent) && t.Context().Err() == nil { // a busy machine
			grant, err = e.Acquire(t.Context(), h, ttl)
		}
		if err != nil {
			t.Errorf("Acquire: %v", err)
			return
		}
		if want := master(shards, grant.Slot); grant.Node != want {
			t.Errorf("granted by %s, want %s", grant.Node, want)
		}
		_, err = e.Acquire(t.Context(), lockengine.Request{Key: h.Key, Owner: "they:1"}, ttl)
		wantHeld(t, err, h.Owner)
		release(t, e, h)
	})
}

// recorder notes how often the script of each owner was received.
type recorder struct {
	seen  map[string]int // guarded by the node, which answers one at a time
	reply func(args []string) string
}

func record(n *node, reply func(args []string) string) *recorder {
	r := &recorder{seen: make(map[string]int), reply: reply}
	n.reply = func(args []string) string {
		r.seen[args[4]]++
		return r.reply(args)
	}
	return r
}

// When a connection breaks, nothing that was on it is sent again.
func TestCrowdIsSentOnce(t *testing.T) {
	n := newNode(t)
	r := record(n, func([]string) string { return hangUp })
	e := open(t, n.addr)
	together(crowd, func(i int) {
		_, err := e.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: fmt.Sprint("me:", i)}, ttl)
		wantUnclear(t, err, "")
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	for owner, times := range r.seen {
		if times > 1 {
			t.Errorf("the script of %s was sent %d times", owner, times)
		}
	}
}

func TestCrowdAfterScriptFlush(t *testing.T) {
	n := newNode(t)
	n.reply = func(args []string) string {
		if args[0] == "evalsha" {
			return "-NOSCRIPT No matching script.\r\n"
		}
		return granted["acquire"]
	}
	e := open(t, n.addr)
	together(crowd, func(i int) { acquire(t, e, lockengine.Request{Key: "k", Owner: fmt.Sprint("me:", i)}) })
}

func TestCrowdFollowsMoved(t *testing.T) {
	before, after := newNode(t), newNode(t)
	before.reply = func([]string) string { return "-MOVED 7629 " + after.addr + "\r\n" }
	r := record(after, func([]string) string { return granted["acquire"] })
	e := open(t, before.addr)
	together(crowd, func(i int) {
		if grant := acquire(t, e, lockengine.Request{Key: "k", Owner: fmt.Sprint("me:", i)}); grant.Node != after.addr {
			t.Errorf("granted by %s, want %s", grant.Node, after.addr)
		}
	})
	if len(r.seen) != crowd || after.count("evalsha") != crowd {
		t.Errorf("%d scripts of %d owners were executed, want %d", after.count("evalsha"), len(r.seen), crowd)
	}
}

// What waits for its batch while its caller goes away is not sent any more, and
// the error says so.
func TestWithdrawn(t *testing.T) {
	n := newNode(t)
	begin, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r := record(n, func([]string) string {
		once.Do(func() { close(begin) })
		<-goOn
		return granted["acquire"]
	})
	e := open(t, n.addr)
	ctx, cancel := context.WithCancel(t.Context())
	withdrawn := make(map[string]bool)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			owner := fmt.Sprint("me:", i)
			_, err := e.Acquire(ctx, lockengine.Request{Key: "k", Owner: owner}, ttl)
			mu.Lock()
			defer mu.Unlock()
			withdrawn[owner] = notSent(err)
		})
	}
	<-begin // a batch, or single requests, are on their way
	cancel()
	close(goOn)
	wg.Wait()
	e.Close(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	for owner, none := range withdrawn {
		if none && r.seen[owner] > 0 {
			t.Errorf("%s was not sent, says the error, but it was", owner)
		}
	}
}

// Closing while a crowd is at work ends all of it.
func TestCloseUnderLoad(t *testing.T) {
	n := newNode(t)
	closing := make(chan struct{})
	var once sync.Once
	n.reply = func([]string) string {
		once.Do(func() { close(closing) })
		return granted["acquire"]
	}
	e, err := redislock.Open(options(n.addr), redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			for range 100 {
				if _, err := e.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: fmt.Sprint("me:", i)}, ttl); err != nil {
					return
				}
			}
		})
	}
	<-closing
	if err := e.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	wg.Wait()
	wantUnclear(t, e.Release(t.Context(), hold), "closed")
}
