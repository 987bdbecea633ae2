package etcdlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/etcdlock"
	"github.com/belaygo/belay/lock/lockengine"
)

// TestUnansweredGrantsShareALease: a caller that gives up before etcd answers leaves no lease of its
// own in etcd.
func TestUnansweredGrantsShareALease(t *testing.T) {
	endpoints := teststack.Etcd(t)
	var swallows atomic.Bool
	swallows.Store(true)
	var mu sync.Mutex
	ids := make(map[int64]bool) // that were asked for, and executed
	swallow := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !strings.HasSuffix(method, "/LeaseGrant") || !swallows.Load() {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		err := invoke(context.WithoutCancel(ctx), method, req, reply, cc, opts...)
		if res, ok := reply.(*pb.LeaseGrantResponse); ok && err == nil {
			mu.Lock()
			ids[res.ID] = true
			mu.Unlock()
		}
		<-ctx.Done()
		return ctx.Err()
	}
	client, err := dial(endpoints, grpc.WithUnaryInterceptor(swallow))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e, err := etcdlock.New(client, etcdlock.Config{Prefix: prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := e.Acquire(ctx, lockengine.Request{Key: "k", Owner: "me:1"}, ttl)
		cancel()
		if !errors.Is(err, lockengine.ErrNotSent) {
			t.Fatalf("err = %v, want ErrNotSent", err)
		}
	}
	swallows.Store(false)
	if _, err := e.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: "me:1"}, ttl); err != nil {
		t.Errorf("after the answers: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != 1 {
		t.Errorf("%d leases were granted, want 1", len(ids))
	}
}

// Acquires whose callers give up before etcd answers do not leave a lease in etcd each: the leases
// of an engine are replaced once a second at most.
func TestCancelledAcquiresShareLeases(t *testing.T) {
	endpoints := teststack.Etcd(t)
	swallow := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if strings.HasSuffix(method, "/Txn") {
			<-ctx.Done()
			return ctx.Err()
		}
		return err
	}
	client, err := dial(endpoints, grpc.WithUnaryInterceptor(swallow))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e, err := etcdlock.New(client, etcdlock.Config{Prefix: prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	leases := func() map[int64]bool {
		t.Helper()
		all, err := client.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids := make(map[int64]bool)
		for _, l := range all.Leases {
			ids[int64(l.ID)] = true
		}
		return ids
	}
	before, begun := leases(), time.Now()
	const acquires = 40
	for range acquires {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := e.Acquire(ctx, lockengine.Request{Key: "k", Owner: "me:1"}, ttl)
		cancel()
		if err == nil {
			t.Fatal("an acquire was answered")
		}
	}
	more := 0
	for id := range leases() {
		if !before[id] {
			more++
		}
	}
	if most := int(time.Since(begun)/time.Second) + 2; more > most || more == 0 {
		t.Errorf("%d leases after %d acquires without an answer, want 1 to %d", more, acquires, most)
	}
}
