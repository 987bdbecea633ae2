package quorumlock_test

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
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/quorumlock"
	"github.com/belaygo/belay/lock/redislock"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	lockhistory.Main(connect)
	goleak.VerifyTestMain(m,
		// A closed client that could not dial sleeps for a second before it looks.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).queuedNewConn.func2"),
	)
}

const ttl = 20 * time.Second

var (
	mine   = lockengine.Request{Key: "k", Owner: "me:1"}
	theirs = lockengine.Request{Key: "k", Owner: "they:1"}
)

// durable is the first word of the addresses for connect if the restart rule is off.
const durable = "durable"

// unreported is the word before the rule if nodes report no losses.
const unreported = "unreported"

// restarts stands for the rule that servers wait after a restart.
const restarts = ""

func where(rule string, servers []string) string { return rule + " " + strings.Join(servers, " ") }

// connect opens an engine on Redis servers, host:port with blanks between.
func connect(where string) (lockengine.Engine, func(), error) {
	addrs := strings.Fields(where)
	var cfg quorumlock.Config
	ofNodes := redislock.Config{AskStart: true}
	if addrs[0] == unreported {
		addrs, ofNodes.NoTracking = addrs[1:], true
	}
	if addrs[0] == durable {
		addrs, cfg.Durable = addrs[1:], true
	}
	var nodes []lockengine.Engine
	closeNodes := func() {
		for _, node := range nodes {
			_ = node.Close(context.Background())
		}
	}
	for _, addr := range addrs {
		opts, err := redislock.ParseURL("redis://" + addr)
		if err != nil {
			return nil, nil, err
		}
		node, err := redislock.Open(opts, ofNodes)
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, node)
	}
	e, err := quorumlock.New(nodes, cfg)
	if err != nil {
		return nil, nil, err
	}
	return e, func() {
		_ = e.Close(context.Background())
		closeNodes()
	}, nil
}

// open returns an engine on servers, with the restart rule or without: restarts or durable.
func open(tb testing.TB, rule string, servers ...string) quorumlock.Engine {
	tb.Helper()
	e, closeEngine, err := connect(where(rule, servers))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(closeEngine)
	return e.(quorumlock.Engine)
}

// over returns an engine on nodes that forget nothing.
func over(tb testing.TB, nodes ...lockengine.Engine) quorumlock.Engine {
	tb.Helper()
	e, err := quorumlock.New(nodes, quorumlock.Config{Durable: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func memlocks(n int) (nodes []lockengine.Engine) {
	for range n {
		nodes = append(nodes, memlock.New())
	}
	return nodes
}

func acquire(tb testing.TB, e lockengine.Engine, r lockengine.Request) lockengine.Grant {
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

func wantHeld(tb testing.TB, err error, owner string) {
	tb.Helper()
	held, ok := errors.AsType[*lockengine.HeldError](err)
	if !ok || held.Holder.Owner != owner {
		tb.Errorf("error is %v, want that %s has it", err, owner)
	}
}

func wantIs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("error is %v, want one that matches %q", err, target)
	}
}
