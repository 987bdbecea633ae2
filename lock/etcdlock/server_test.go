package etcdlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/etcdlock"
	"github.com/belaygo/belay/lock/lockengine"
)

// openWith returns an engine whose client has options.
func openWith(tb testing.TB, opts ...grpc.DialOption) etcdlock.Engine {
	tb.Helper()
	e, err := etcdlock.New(newClient(tb, teststack.Etcd(tb), opts...), etcdlock.Config{Prefix: prefix(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// afterCall changes the errors of requests that were executed.
func afterCall(change func(method string, err error) error) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return change(method[strings.LastIndex(method, "/")+1:], call(ctx, method, in, out, conn, opts...))
	})
}

// TestSilentMemberDelaysNoRenewal: an acquire that waits for an answer about the lease, and has
// much time, does not keep renewals from asking, too.
func TestSilentMemberDelaysNoRenewal(t *testing.T) {
	const ttl = 3 * time.Second
	var silent atomic.Bool // the next member that is asked
	waits := make(chan struct{})
	e := openWith(t, grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if silent.CompareAndSwap(true, false) {
			close(waits)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return open(ctx, d, conn, method, opts...)
	}))
	ctx, giveUp := context.WithCancel(t.Context())
	acquired := make(chan struct{})
	defer func() {
		giveUp()
		<-acquired
	}()
	acquire(t, e, mine, ttl)
	silent.Store(true)
	go func() {
		defer close(acquired)
		for i := 0; ctx.Err() == nil; i++ { // until the lease is to be kept alive
			_, _ = e.Acquire(ctx, lockengine.Request{Key: fmt.Sprint("other", i), Owner: "me:2"}, ttl)
			select {
			case <-waits:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	<-waits
	renewing, cancel := context.WithTimeout(t.Context(), ttl)
	defer cancel()
	if err := e.Renew(renewing, []lockengine.Request{mine}, ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
}

// TestFullServerMayHaveTaken: a server without space for more may say so of a request that it
// has executed.
func TestFullServerMayHaveTaken(t *testing.T) {
	var full atomic.Bool
	e := openWith(t, afterCall(func(method string, err error) error {
		if err == nil && method == "Txn" && full.Load() {
			return rpctypes.ErrGRPCNoSpace
		}
		return err
	}))
	full.Store(true)
	_, err := e.Acquire(t.Context(), mine, ttl)
	wantIs(t, err, lockengine.ErrNoAnswer)
	full.Store(false)
	wantHolder(t, e, mine.Key, mine.Owner)
	release(t, e, mine)
}

// TestRejectedAcquiresShareLease: acquires that the server rejects take no further leases.
func TestRejectedAcquiresShareLease(t *testing.T) {
	sent := requestCounter{n: make(map[string]int)}
	e := openWith(t, append(sent.options(), afterCall(func(method string, err error) error {
		if method == "Txn" {
			return rpctypes.ErrGRPCPermissionDenied
		}
		return err
	}))...)
	for range 3 {
		_, err := e.Acquire(t.Context(), mine, ttl)
		wantIs(t, err, lockengine.ErrDenied)
	}
	if n := sent.of("LeaseGrant"); n != 1 {
		t.Errorf("%d leases were granted, want 1", n)
	}
}

// deletions catches the requests that delete a lock that nobody renews.
func deletions(then func(ctx context.Context) error) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if txn, ok := in.(*pb.TxnRequest); ok && txn.Success[0].GetRequestDeleteRange() != nil && txn.Compare[0].Target == pb.Compare_MOD {
			if err := then(ctx); err != nil {
				return err
			}
		}
		return call(ctx, method, in, out, conn, opts...)
	})
}

// TestAcquireDuringDeletion: a lock that is being deleted is not granted to its owner again, as
// it would be deleted all the same.
func TestAcquireDuringDeletion(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	e := openWith(t, deletions(func(context.Context) error {
		close(begun)
		<-goOn
		return nil
	}))
	const ttl = 2 * time.Second // half of it is for the lease
	acquire(t, e, mine, ttl)
	<-begun
	_, err := e.Acquire(t.Context(), mine, ttl)
	close(goOn)
	wantIs(t, err, lockengine.ErrRefused)
	testwait.Until(t, "it is deleted", func() bool {
		h, err := e.Inspect(t.Context(), mine.Key)
		return err == nil && h.Owner == ""
	})
}

// TestOneWarningForALock: a lock that can't be deleted is one warning, however often that is
// tried.
func TestOneWarningForALock(t *testing.T) {
	var tries atomic.Int32
	var log testlog.Buffer
	e, err := etcdlock.New(newClient(t, teststack.Etcd(t), deletions(func(context.Context) error {
		tries.Add(1)
		return rpctypes.ErrGRPCPermissionDenied
	})), etcdlock.Config{Prefix: prefix(t), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	acquire(t, e, mine, 2*time.Second)
	testwait.Until(t, "it is tried three times", func() bool { return tries.Load() >= 3 })
	if n := strings.Count(log.String(), "WARN"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log.String())
	}
}

// TestLocksMoveTogether: when the engine has taken another lease, a renewal moves many locks
// there with one request, and what has changed meanwhile is still told apart.
func TestLocksMoveTogether(t *testing.T) {
	var silent atomic.Bool
	sent := requestCounter{n: make(map[string]int)}
	e := openWith(t, append(sent.options(), afterCall(func(method string, err error) error {
		if method == "Txn" && silent.Load() {
			return rpctypes.ErrGRPCTimeout
		}
		return err
	}))...)
	var many []lockengine.Request
	for i := range 200 {
		many = append(many, lockengine.Request{Key: fmt.Sprint("many", i), Owner: "me:1"})
		acquire(t, e, many[i], ttl)
	}
	silent.Store(true)
	_, err := e.Acquire(t.Context(), mine, ttl)
	wantIs(t, err, lockengine.ErrNoAnswer)
	silent.Store(false)
	release(t, e, many[3])
	before, leases := sent.of("Txn"), sent.of("LeaseGrant")
	for i, err := range e.Renew(t.Context(), many, ttl) {
		if i == 3 {
			wantIs(t, err, lockengine.ErrNotHeld)
		} else if err != nil {
			t.Errorf("Renew %d: %v", i, err)
		}
	}
	if n := sent.of("Txn") - before; n != 4 || sent.of("LeaseGrant") != leases+1 {
		t.Errorf("%d transactions and %d leases, want 4 and 1", n, sent.of("LeaseGrant")-leases)
	}
	for i, err := range e.Renew(t.Context(), many, ttl) { // on the lease where they are now
		if i != 3 && err != nil {
			t.Errorf("Renew %d: %v", i, err)
		}
	}
	if n := sent.of("Txn") - before; n != 6 {
		t.Errorf("%d transactions, want 6", n)
	}
}

// TestUnansweredMove: a renewal moves a lock to another lease, and gets no answer. If nobody
// renews the lock after that, it ends, however long other locks go on.
func TestUnansweredMove(t *testing.T) {
	const ttl = 3 * time.Second
	var silent atomic.Bool // about what is written
	e := openWith(t, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := call(ctx, method, in, out, conn, opts...)
		if txn, ok := in.(*pb.TxnRequest); ok && txn.Success[0].GetRequestPut() != nil && silent.Load() {
			return rpctypes.ErrGRPCTimeout
		}
		return err
	}))
	acquire(t, e, mine, ttl)
	silent.Store(true)
	_, err := e.Acquire(t.Context(), lockengine.Request{Key: "other", Owner: "me:1"}, ttl) // so there is another lease
	wantIs(t, err, lockengine.ErrNoAnswer)
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], lockengine.ErrNoAnswer)
	silent.Store(false)
	testwait.Until(t, "it has ended", func() bool {
		_, _ = e.Acquire(t.Context(), lockengine.Request{Key: "last", Owner: "me:1"}, ttl) // so the lease goes on
		h, err := e.Inspect(t.Context(), mine.Key)
		return err == nil && h.Owner == ""
	})
}

// TestWatchOnClosedClient: Watch returns, though there is no client any more.
func TestWatchOnClosedClient(t *testing.T) {
	client := newClient(t, teststack.Etcd(t))
	e, err := etcdlock.New(client, etcdlock.Config{Prefix: prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := e.Watch(ctx, mine.Key, func() {}); err == nil || ctx.Err() != nil {
		t.Errorf("Watch: %v, and it has waited for its context: %v", err, ctx.Err())
	}
}
