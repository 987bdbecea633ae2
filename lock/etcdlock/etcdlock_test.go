package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/etcdlock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
)

func TestNew(t *testing.T) {
	if _, err := etcdlock.New(nil, etcdlock.Config{}); err == nil {
		t.Error("a nil client is taken")
	}
	client := newClient(t, []string{"127.0.0.1:1"})
	if _, err := etcdlock.New(client, etcdlock.Config{Name: "\xff"}); err == nil {
		t.Error("a name that is not UTF-8 is taken")
	}
	e, err := etcdlock.New(client, etcdlock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = e.Acquire(ctx, mine, ttl)
	wantIs(t, err, lockengine.ErrNotSent)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = e.Acquire(t.Context(), mine, ttl)
	wantIs(t, err, lockengine.ErrDenied)
	wantIs(t, e.Release(t.Context(), mine), lockengine.ErrDenied)
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], lockengine.ErrDenied)
	_, err = e.Watch(t.Context(), mine.Key, func() {})
	wantIs(t, err, lockengine.ErrDenied)
}

func newClient(tb testing.TB, members []string, opts ...grpc.DialOption) *clientv3.Client {
	tb.Helper()
	client, err := dial(members, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// A requestCounter counts by method what a client sends.
type requestCounter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *requestCounter) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[method[strings.LastIndex(method, "/")+1:]]++
}

// of returns how many requests of a method were sent.
func (c *requestCounter) of(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[method]
}

func (c *requestCounter) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			c.add(method)
			return call(ctx, method, in, out, conn, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			c.add(method)
			return open(ctx, d, conn, method, opts...)
		}),
	}
}

// TestRequests counts what each call sends.
func TestRequests(t *testing.T) {
	sent := requestCounter{n: make(map[string]int)}
	e, err := etcdlock.New(newClient(t, teststack.Etcd(t), sent.options()...), etcdlock.Config{Prefix: prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	want := func(what string, n map[string]int) {
		t.Helper()
		sent.mu.Lock()
		defer sent.mu.Unlock()
		if fmt.Sprint(sent.n) != fmt.Sprint(n) {
			t.Errorf("%s: sent %v, want %v", what, sent.n, n)
		}
		clear(sent.n)
	}
	var many []lockengine.Request
	for i := range 200 {
		many = append(many, lockengine.Request{Key: fmt.Sprint("many", i), Owner: "me:1"})
	}
	acquire(t, e, many[0], ttl)
	want("the first acquire", map[string]int{"LeaseGrant": 1, "Txn": 1})
	for _, r := range many[1:] {
		acquire(t, e, r, ttl)
	}
	want("199 acquires", map[string]int{"Txn": 199})
	_, _ = e.Acquire(t.Context(), lockengine.Request{Key: many[0].Key, Owner: "they:1"}, ttl)
	want("a refused acquire", map[string]int{"Txn": 1})
	_, _ = e.Acquire(t.Context(), lockengine.Request{Key: many[0].Key, Owner: "they:1", Waits: true}, ttl)
	want("a refused acquire of one that waits", map[string]int{"Range": 1})
	for i, err := range e.Renew(t.Context(), many, ttl) {
		if err != nil {
			t.Errorf("Renew %d: %v", i, err)
		}
	}
	want("a renewal of 200", map[string]int{"LeaseKeepAlive": 1, "Txn": 2})
	wantHolder(t, e, many[0].Key, "me:1")
	want("Inspect", map[string]int{"Range": 1})
	release(t, e, many[0])
	want("a release", map[string]int{"Txn": 1})
}

// TestLeaseRevoked: locks whose lease was revoked are gone, and others can be acquired.
func TestLeaseRevoked(t *testing.T) {
	members := teststack.Etcd(t)
	client, p := newClient(t, members), prefix(t)
	e := open(t, p, members)
	acquire(t, e, mine, ttl)
	kv, err := client.Get(t.Context(), p+mine.Key)
	if err != nil || len(kv.Kvs) != 1 {
		t.Fatalf("%v, %v", kv, err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(kv.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	wantHolder(t, e, mine.Key, "")
	acquire(t, e, theirs, ttl) // with the lease that is gone, at first
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], lockengine.ErrNotHeld)
	wantHolder(t, e, mine.Key, theirs.Owner)
	release(t, e, theirs)
}

// TestUnrenewedEnds: a lock that nobody renews ends, though others keep its lease alive.
func TestUnrenewedEnds(t *testing.T) {
	members := teststack.Etcd(t)
	e := open(t, prefix(t), members)
	const ttl = time.Second
	other := lockengine.Request{Key: "other", Owner: "me:2"}
	acquire(t, e, mine, ttl)
	acquire(t, e, other, ttl)
	testwait.Until(t, "it ends", func() bool {
		if err := e.Renew(t.Context(), []lockengine.Request{other}, ttl)[0]; err != nil {
			t.Fatal(err)
		}
		h, err := e.Inspect(t.Context(), mine.Key)
		return err == nil && h.Owner == ""
	})
	wantHolder(t, e, other.Key, other.Owner)
	release(t, e, other)
}

// TestAcquireWithoutAnswerEnds: a lock that may be left by an acquire without an answer ends, even
// if the engine renews other locks.
func TestAcquireWithoutAnswerEnds(t *testing.T) {
	members := teststack.Etcd(t)
	p := prefix(t)
	links, fault := link(t, members)
	e, watcher := open(t, p, links), open(t, p, members)
	const ttl = 2 * time.Second
	other := lockengine.Request{Key: "other", Owner: "me:2"}
	acquire(t, e, other, ttl)
	heal := fault(locktest.SwallowAnswers)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	acquired := make(chan error, 1)
	go func() {
		_, err := e.Acquire(ctx, mine, ttl)
		acquired <- err
	}()
	testwait.Until(t, "the lock is taken", func() bool {
		h, err := watcher.Inspect(t.Context(), mine.Key)
		return err == nil && h.Owner == mine.Owner
	})
	giveUp()
	wantIs(t, <-acquired, lockengine.ErrNoAnswer)
	heal()
	testwait.Until(t, "it ends", func() bool {
		_ = e.Renew(t.Context(), []lockengine.Request{other}, ttl)
		h, err := watcher.Inspect(t.Context(), mine.Key)
		return err == nil && h.Owner == ""
	})
	wantHolder(t, watcher, other.Key, other.Owner)
}

// TestWatchAfterCompaction: a watch wakes its caller if etcd has compacted a release that the watch
// missed.
func TestWatchAfterCompaction(t *testing.T) {
	members := teststack.Etcd(t)
	p := prefix(t)
	links, fault := link(t, members)
	e, other := open(t, p, links), open(t, p, members)
	acquire(t, other, theirs, ttl)
	woken := make(chan struct{}, 1)
	stop, err := e.Watch(t.Context(), theirs.Key, func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	heal := fault(locktest.RefuseDials)
	release(t, other, theirs)
	acquire(t, other, mine, ttl)
	client := newClient(t, members)
	res, err := client.Get(t.Context(), "any")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), res.Header.Revision); err != nil {
		t.Fatal(err)
	}
	heal()
	<-woken
	release(t, other, mine)
}

// TestManyLocks: thousands of locks are kept for three renewals.
func TestManyLocks(t *testing.T) {
	const n, ttl = 10_000, 9 * time.Second
	e := open(t, prefix(t), teststack.Etcd(t))
	var renewals atomic.Int64
	l, err := lock.New(counted{e, &renewals}, lock.Config{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	leases := make([]*lock.Lease, n)
	var g errgroup.Group
	g.SetLimit(128)
	for i := range leases {
		g.Go(func() (err error) {
			leases[i], err = l.Acquire(t.Context(), fmt.Sprint("many", i))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	renewals.Store(0)
	testwait.Until(t, "all were renewed three times", func() bool { return renewals.Load() >= 3*n })
	for _, lease := range leases {
		g.Go(func() error { return errors.Join(lease.Err(), lease.Release(t.Context())) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A counted engine counts the locks that were renewed.
type counted struct {
	etcdlock.Engine
	n *atomic.Int64
}

func (c counted) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	errs := c.Engine.Renew(ctx, rs, ttl)
	for _, err := range errs {
		if err == nil {
			c.n.Add(1)
		}
	}
	return errs
}

// A lock is its owner's alone: no other gets it or releases it.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	members, p := teststack.Etcd(t), prefix(t)
	e, other := open(t, p, members), open(t, p, members)
	acquire(t, e, mine, ttl)
	_, err := other.Acquire(t.Context(), theirs, ttl)
	if held, ok := errors.AsType[*lockengine.HeldError](err); !ok || held.Holder.Owner != mine.Owner {
		t.Fatalf("another acquires it: %v", err)
	}
	wantIs(t, other.Release(t.Context(), theirs), lockengine.ErrNotHeld)
	release(t, e, mine)
	acquire(t, other, theirs, ttl)
	wantIs(t, e.Release(t.Context(), mine), lockengine.ErrNotHeld)
	wantHolder(t, other, theirs.Key, theirs.Owner)
	release(t, other, theirs)
}
