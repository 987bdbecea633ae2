package etcdlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/etcdlock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
)

// TestWaiterWithoutAnswer: if a waiting caller gets no answer to its read, no request was sent that
// could acquire the lock, so there is nothing to release.
func TestWaiterWithoutAnswer(t *testing.T) {
	links, fault := link(t, teststack.Etcd(t))
	e := open(t, prefix(t), links)
	acquire(t, e, theirs, ttl)
	defer fault(locktest.SwallowAnswers)()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := mine
	r.Waits = true
	_, err := e.Acquire(ctx, r, ttl)
	wantIs(t, err, lockengine.ErrNotSent)
	wantIs(t, err, context.DeadlineExceeded)
	if errors.Is(err, lockengine.ErrNoAnswer) {
		t.Errorf("the lock may have been taken: %v", err)
	}
}

// TestAcquireEndsBesideRenewal: an acquire ends with its context, even while a renewal with a longer
// context waits for the same lease.
func TestAcquireEndsBesideRenewal(t *testing.T) {
	members, p := teststack.Etcd(t), prefix(t)
	links, fault := link(t, members)
	sent := requestCounter{n: make(map[string]int)}
	e, err := etcdlock.New(newClient(t, links, sent.options()...), etcdlock.Config{Prefix: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	other := lockengine.Request{Key: "other", Owner: "me:2"}
	acquire(t, e, other, ttl)
	defer fault(locktest.SwallowAnswers)()

	acquiring, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	acquired := make(chan error, 1)
	go func() {
		_, err := e.Acquire(acquiring, mine, ttl)
		acquired <- err
	}()
	testwait.Until(t, "the acquire is sent", func() bool { return sent.of("Txn") == 2 })
	renewing, stop := context.WithCancel(t.Context())
	renewed := make(chan []error, 1)
	go func() { renewed <- e.Renew(renewing, []lockengine.Request{other}, ttl) }()
	defer func() {
		stop()
		<-renewed
	}()
	testwait.Until(t, "the renewal is sent", func() bool { return sent.of("LeaseKeepAlive") == 1 })
	giveUp()
	testwait.Until(t, "the acquire ends", func() bool { return len(acquired) == 1 })
	wantIs(t, <-acquired, lockengine.ErrNoAnswer)
}
