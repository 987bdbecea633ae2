package etcdlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/etcdlock"
)

// openWith returns an engine whose client has options.
func openWith(tb testing.TB, opts ...grpc.DialOption) *etcdlock.Engine {
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
			_, _ = e.Acquire(ctx, lock.Request{Key: fmt.Sprint("other", i), Owner: "me:2"}, ttl)
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
	if err := e.Renew(renewing, []lock.Request{mine}, ttl)[0]; err != nil {
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
	wantIs(t, err, lock.ErrNoAnswer)
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
		wantIs(t, err, lock.ErrDenied)
	}
	if n := sent.of("LeaseGrant"); n != 1 {
		t.Errorf("%d leases were granted, want 1", n)
	}
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
