package etcdlock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/etcdlock"
	"github.com/belaygo/belay/lock/lockengine"
)

// A terms adds to the term of answers whose method ends with a suffix, as if another leader had been
// elected.
type terms struct {
	added  atomic.Uint64
	method atomic.Pointer[string]
	fails  atomic.Pointer[string] // the method whose requests are refused from then on
}

func (e *terms) elect(method string) {
	e.method.Store(&method)
	e.added.Add(1)
}

// raise raises the term of an answer. All later ones have it, too.
func (e *terms) raise(method string, answer any) {
	if at := e.method.Load(); at != nil && !strings.HasSuffix(method, *at) {
		return
	}
	if a, ok := answer.(interface{ GetHeader() *pb.ResponseHeader }); ok && e.added.Load() > 0 && a.GetHeader() != nil {
		e.method.Store(nil)
		a.GetHeader().RaftTerm += e.added.Load()
	}
}

func (e *terms) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if at := e.fails.Load(); at != nil && strings.HasSuffix(method, *at) {
		return context.DeadlineExceeded
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err == nil {
		e.raise(method, reply)
	}
	return err
}

func (e *terms) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	return &termsStream{s, e, method}, err
}

type termsStream struct {
	grpc.ClientStream
	of     *terms
	method string
}

func (s *termsStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.of.raise(s.method, m)
	}
	return err
}

// underTerms returns an engine whose etcd can elect another leader, and the lease to which etcd has
// bound a lock.
func underTerms(t *testing.T) (e etcdlock.Engine, elections *terms, leaseOf func(key string) int64) {
	t.Helper()
	elections = new(terms)
	client, err := dial(teststack.Etcd(t), grpc.WithUnaryInterceptor(elections.unary), grpc.WithStreamInterceptor(elections.stream))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	at := prefix(t)
	e, err = etcdlock.New(client, etcdlock.Config{Prefix: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	plain, err := dial(teststack.Etcd(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close() })
	return e, elections, func(key string) int64 {
		t.Helper()
		res, err := plain.Get(t.Context(), at+key)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Kvs) == 0 {
			return 0
		}
		return res.Kvs[0].Lease
	}
}

// TestLeaseOfAnEarlierLeader: once an answer shows another term, no lock is bound to a lease from
// before: a leader that was deposed may end that.
func TestLeaseOfAnEarlierLeader(t *testing.T) {
	request := func(key string) lockengine.Request { return lockengine.Request{Key: key, Owner: "me:" + key} }
	acquire := func(t *testing.T, e etcdlock.Engine, key string) {
		t.Helper()
		if _, err := e.Acquire(t.Context(), request(key), ttl); err != nil {
			t.Fatal(err)
		}
	}
	for name, shows := range map[string]func(t *testing.T, e etcdlock.Engine, elections *terms){
		"an answer about another lock": func(t *testing.T, e etcdlock.Engine, elections *terms) {
			elections.elect("/Range")
			if _, err := e.Inspect(t.Context(), "other"); err != nil {
				t.Fatal(err)
			}
			acquire(t, e, "second")
		},
		"the answer about the lock": func(t *testing.T, e etcdlock.Engine, elections *terms) {
			elections.elect("/Txn")
			acquire(t, e, "second")
		},
		"the answer about the lease": func(t *testing.T, e etcdlock.Engine, elections *terms) {
			elections.elect("/LeaseKeepAlive")
			if err := errors.Join(e.Renew(t.Context(), []lockengine.Request{request("first")}, ttl)...); err != nil {
				t.Fatal(err)
			}
			acquire(t, e, "second")
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, elections, leaseOf := underTerms(t)
			acquire(t, e, "first")
			before := leaseOf("first")
			shows(t, e, elections)
			if now := leaseOf("second"); now == 0 || now == before {
				t.Errorf("the lock is bound to lease %x, which is of the earlier term", now)
			}
			if err := errors.Join(e.Renew(t.Context(), []lockengine.Request{request("first")}, ttl)...); err != nil {
				t.Fatal(err)
			}
			if now := leaseOf("first"); now == 0 || now == before {
				t.Errorf("the lock that was held is bound to lease %x, which is of the earlier term", now)
			}
		})
	}
}

// TestLockThatCannotLeaveItsLease: a lock that was created and can't leave the lease of an earlier
// term got no answer, so that its caller takes it back.
func TestLockThatCannotLeaveItsLease(t *testing.T) {
	e, elections, leaseOf := underTerms(t)
	if _, err := e.Acquire(t.Context(), lockengine.Request{Key: "first", Owner: "me:1"}, ttl); err != nil {
		t.Fatal(err)
	}
	elections.elect("/Txn")
	grant := "/LeaseGrant"
	elections.fails.Store(&grant)
	_, err := e.Acquire(t.Context(), lockengine.Request{Key: "second", Owner: "me:2"}, ttl)
	if !errors.Is(err, lockengine.ErrNoAnswer) || errors.Is(err, lockengine.ErrNotSent) {
		t.Errorf("err = %v, want ErrNoAnswer", err)
	}
	if err := e.Release(t.Context(), lockengine.Request{Key: "second", Owner: "me:2"}); err != nil {
		t.Errorf("release: %v", err)
	}
	if leaseOf("second") != 0 {
		t.Error("the lock is still there")
	}
}
