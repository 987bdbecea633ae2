package etcdlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/etcdlock"
	"github.com/belaygo/belay/lock/lockengine"
)

func TestMain(m *testing.M) {
	lockhistory.Main(connect)
	goleak.VerifyTestMain(m)
}

const ttl = 20 * time.Second

var (
	mine   = lockengine.Request{Key: "k", Owner: "me:1"}
	theirs = lockengine.Request{Key: "k", Owner: "they:1"}
)

func dial(endpoints []string, opts ...grpc.DialOption) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, DialOptions: opts, Logger: zap.NewNop()})
}

// connect opens an engine on members of etcd, after a prefix, all with blanks between.
func connect(where string) (lockengine.Engine, func(), error) {
	words := strings.Fields(where)
	client, err := dial(words[1:])
	if err != nil {
		return nil, nil, err
	}
	e, err := etcdlock.New(client, etcdlock.Config{Prefix: words[0]})
	if err != nil {
		return nil, nil, err
	}
	return e, func() {
		_ = e.Close(context.Background())
		_ = client.Close()
	}, nil
}

func where(prefix string, endpoints []string) string {
	return prefix + " " + strings.Join(endpoints, " ")
}

func open(tb testing.TB, prefix string, endpoints []string) etcdlock.Engine {
	tb.Helper()
	e, closeEngine, err := connect(where(prefix, endpoints))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(closeEngine)
	return e.(etcdlock.Engine)
}

// prefix is one of the test's own.
func prefix(tb testing.TB) string {
	tb.Helper()
	return teststack.Key(tb, "etcd") + "/"
}

func acquire(tb testing.TB, e lockengine.Engine, r lockengine.Request, ttl time.Duration) lockengine.Grant {
	tb.Helper()
	grant, err := e.Acquire(tb.Context(), r, ttl)
	if err != nil {
		tb.Fatalf("Acquire: %v", err)
	}
	return grant
}

func release(tb testing.TB, e lockengine.Engine, r lockengine.Request) {
	tb.Helper()
	if err := e.Release(tb.Context(), r); err != nil {
		tb.Errorf("Release: %v", err)
	}
}

func wantHolder(tb testing.TB, e lockengine.Engine, key, owner string) {
	tb.Helper()
	if h, err := e.Inspect(tb.Context(), key); err != nil || h.Owner != owner {
		tb.Errorf("held by %q, %v, want %q", h.Owner, err, owner)
	}
}

func wantIs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("error is %v, want one that matches %q", err, target)
	}
}
