package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/zklock"
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

// connect opens an engine on a root, with a session timeout and servers, all with blanks
// between.
func connect(where string) (lockengine.Engine, func(), error) {
	words := strings.Fields(where)
	timeout, err := time.ParseDuration(words[1])
	if err != nil {
		return nil, nil, err
	}
	e, err := zklock.New(zklock.Config{Root: words[0], SessionTimeout: timeout, Servers: words[2:]})
	if err != nil {
		return nil, nil, err
	}
	return e, func() { _ = e.Close(context.Background()) }, nil
}

func where(root string, timeout time.Duration, servers []string) string {
	return root + " " + timeout.String() + " " + strings.Join(servers, " ")
}

// open returns an engine whose sessions last for as long as the servers allow.
func open(tb testing.TB, root string, servers []string) zklock.Engine {
	tb.Helper()
	return openWith(tb, zklock.Config{Root: root, SessionTimeout: time.Minute, Servers: servers})
}

func openWith(tb testing.TB, cfg zklock.Config) zklock.Engine {
	tb.Helper()
	e, err := zklock.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return e
}

// root is one of the test's own.
func root(tb testing.TB) string {
	tb.Helper()
	return "/" + strings.Map(func(r rune) rune {
		if r == '/' {
			return '-'
		}
		return r
	}, teststack.Key(tb, "zk"))
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
