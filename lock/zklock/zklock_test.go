package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/zklock"
)

func TestNewRejectsBadInput(t *testing.T) {
	servers := []string{"127.0.0.1:1"}
	for name, cfg := range map[string]zklock.Config{
		"no server":              {},
		"a server without port":  {Servers: []string{"zk1"}},
		"an empty port":          {Servers: []string{"zk1:"}},
		"a relative root":        {Servers: servers, Root: "belay"},
		"the root of all":        {Servers: servers, Root: "/"},
		"a slash at the end":     {Servers: servers, Root: "/belay/"},
		"dots in the root":       {Servers: servers, Root: "/belay/../x"},
		"NUL in the root":        {Servers: servers, Root: "/be\x00lay"},
		"ZooKeeper's own":        {Servers: servers, Root: "/zookeeper/x"},
		"a name of no text":      {Servers: servers, Name: "\xff"},
		"a negative timeout":     {Servers: servers, SessionTimeout: -time.Second},
		"a timeout of a moment":  {Servers: servers, SessionTimeout: time.Millisecond},
		"a timeout of two years": {Servers: servers, SessionTimeout: 2 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := zklock.New(cfg)
			if err == nil {
				_ = e.Close(t.Context())
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), "zklock: Config.") {
				t.Errorf("the error does not name the field: %v", err)
			}
		})
	}
}

func TestEmptyOwner(t *testing.T) {
	e := openWith(t, zklock.Config{Servers: []string{"127.0.0.1:1"}})
	_, err := e.Acquire(t.Context(), lockengine.Request{Key: "k"}, ttl)
	wantIs(t, err, lockengine.ErrDenied)
}

// A call ends with its context, even if no server can be reached or none answers.
func TestContextEndsCalls(t *testing.T) {
	silent := silence(t)
	e := openWith(t, zklock.Config{Servers: []string{silent}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := e.Acquire(ctx, mine, ttl)
	wantIs(t, err, lockengine.ErrNotSent)
	wantIs(t, err, context.DeadlineExceeded)
}

// silence accepts connections and never answers.
func silence(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// A request that was made without a connection is not sent on the next one, which belongs to
// another session here.
func TestNothingIsSentLater(t *testing.T) {
	servers, r := teststack.ZooKeeper(t), root(t)
	links, fault := link(t, servers)
	e := openWith(t, zklock.Config{Servers: links, Root: r, SessionTimeout: 2 * time.Second})
	other := open(t, r, servers)
	acquire(t, e, lockengine.Request{Key: "held", Owner: "me:0"}, time.Second)
	heal := fault(locktest.RefuseDials)
	for !errors.Is(e.Ping(t.Context()), lockengine.ErrNotSent) { // until the engine has noticed
		<-time.After(time.Millisecond)
	}
	for range 20 { // more than the channel of another client has room for
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := e.Acquire(ctx, mine, time.Second)
		cancel()
		if err == nil || !errors.Is(err, lockengine.ErrNotSent) {
			t.Fatalf("without a server: %v", err)
		}
	}
	awaitFree(t, other, "held") // the session has expired
	heal()
	awaitAnswer(t, e)
	for range 20 { // whatever else the engine was about to send is executed by then
		if err := e.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantHolder(t, other, mine.Key, "")
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{{Key: "held", Owner: "me:0"}}, time.Second)[0], lockengine.ErrNotHeld)
	acquire(t, e, mine, time.Second)
	release(t, e, mine)
}

func awaitFree(t *testing.T, e lockengine.Engine, key string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if h, err := e.Inspect(t.Context(), key); err == nil && h.Owner == "" {
			return
		}
	}
	t.Fatalf("%q is still held", key)
}

func awaitAnswer(t *testing.T, e zklock.Engine) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if e.Ping(t.Context()) == nil {
			return
		}
	}
	t.Fatal("no answer any more")
}

// A ttl that is too long for the session timeout of the servers is rejected, and the error names
// both.
func TestTTLAboveSessionTimeout(t *testing.T) {
	e := openWith(t, zklock.Config{Servers: teststack.ZooKeeper(t), Root: root(t), SessionTimeout: 5 * time.Minute})
	const long = 46 * time.Second // three quarters of the minute that they grant are 45
	_, err := e.Acquire(t.Context(), mine, long)
	wantIs(t, err, lockengine.ErrDenied)
	for _, part := range []string{"46s", "1m0s", "5m0s"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	wantHolder(t, e, mine.Key, "")
	acquire(t, e, mine, 45*time.Second)
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, long)[0], lockengine.ErrDenied)
	release(t, e, mine)
}

// A server that accepts connections and is silent does not keep the engine from the others
// for a session timeout.
func TestSilentServerIsPassedOver(t *testing.T) {
	servers := append([]string{silence(t), silence(t)}, teststack.ZooKeeper(t)[0])
	e := openWith(t, zklock.Config{Servers: servers, Root: root(t), SessionTimeout: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := e.Acquire(ctx, mine, ttl)
	for errors.Is(err, lockengine.ErrNotSent) && ctx.Err() == nil { // all were silent so far
		_, err = e.Acquire(ctx, mine, ttl)
	}
	if err != nil {
		t.Fatal(err)
	}
	release(t, e, mine)
}

// The token is the number of the transaction that created the lock.
func TestTokenIsTransaction(t *testing.T) {
	servers := teststack.ZooKeeper(t)
	e, client := open(t, root(t), servers), dial(t, servers)
	grant := acquire(t, e, mine, ttl)
	if _, err := client.Sync(grant.Entry); err != nil { // its server may be behind the engine's
		t.Fatal(err)
	}
	_, stat, err := client.Get(grant.Entry)
	if err != nil {
		t.Fatal(err)
	}
	if grant.Token != stat.Czxid*1024 {
		t.Errorf("the token is %d, want %d", grant.Token, stat.Czxid*1024)
	}
	if again := acquire(t, e, mine, ttl); again.Token != grant.Token {
		t.Errorf("asked again, the token is %d, want %d", again.Token, grant.Token)
	}
	release(t, e, mine)
}

// dial returns a client of go-zookeeper/zk.
func dial(tb testing.TB, servers []string) *zk.Conn {
	tb.Helper()
	client, events, err := zk.Connect(servers, 10*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	for event := range events {
		if event.State == zk.StateHasSession {
			return client
		}
	}
	tb.Fatal("no session")
	return nil
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// A node that is no lock makes its key unusable, and no other.
func TestForeignNode(t *testing.T) {
	servers := teststack.ZooKeeper(t)
	e, client := open(t, root(t), servers), dial(t, servers)
	grant := acquire(t, e, mine, ttl)
	release(t, e, mine)
	if _, err := client.Create(grant.Entry, []byte(mine.Owner), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	_, err := e.Acquire(t.Context(), mine, ttl)
	wantIs(t, err, lockengine.ErrUnusable)
	wantIs(t, e.Release(t.Context(), mine), lockengine.ErrNotHeld)
	if _, _, err := client.Get(grant.Entry); err != nil {
		t.Errorf("the node is gone: %v", err)
	}
	acquire(t, e, lockengine.Request{Key: "other", Owner: "me:2"}, ttl)
	release(t, e, lockengine.Request{Key: "other", Owner: "me:2"})
}

// A node that the client may not write is ErrDenied, and no lock is taken.
func TestNoRight(t *testing.T) {
	servers, r := teststack.ZooKeeper(t), root(t)
	client := dial(t, servers)
	if _, err := client.Create(r, nil, 0, zk.WorldACL(zk.PermRead)); err != nil {
		t.Fatal(err)
	}
	e := open(t, r, servers)
	_, err := e.Acquire(t.Context(), mine, ttl)
	wantIs(t, err, lockengine.ErrDenied)
}

// After an acquire without an answer, the engine itself deletes what may be left.
func TestUnansweredAcquireEnds(t *testing.T) {
	servers, r := teststack.ZooKeeper(t), root(t)
	links, fault := link(t, servers)
	e, other := open(t, r, links), open(t, r, servers)
	awaitAnswer(t, e)
	acquire(t, e, mine, ttl) // the folder is there
	release(t, e, mine)
	heal := fault(locktest.SwallowAnswers)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	acquired := make(chan error, 1)
	go func() {
		_, err := e.Acquire(ctx, mine, time.Second)
		acquired <- err
	}()
	testwait.Until(t, "the lock is taken", func() bool {
		h, err := other.Inspect(t.Context(), mine.Key)
		return err == nil && h.Owner == mine.Owner
	})
	giveUp()
	wantIs(t, <-acquired, lockengine.ErrNoAnswer)
	heal()
	awaitFree(t, other, mine.Key) // long before the session ends
	if err := e.Ping(t.Context()); err != nil {
		awaitAnswer(t, e)
	}
}

// Locks that are held when the engine is closed are kept at least until their ttl has passed.
// Without any, the session ends at once.
func TestClose(t *testing.T) {
	servers, r := teststack.ZooKeeper(t), root(t)
	other := open(t, r, servers)
	e, err := zklock.New(zklock.Config{Servers: servers, Root: r, SessionTimeout: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, e, mine, 3*time.Second)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantHolder(t, other, mine.Key, mine.Owner)
	_, err = e.Acquire(t.Context(), theirs, ttl)
	wantIs(t, err, lockengine.ErrDenied)
	wantIs(t, e.Release(t.Context(), mine), lockengine.ErrDenied)
	awaitFree(t, other, mine.Key)
}

// If a server uses another protocol, an acquire is not sent.
func TestOtherProtocol(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_ = c.Close()
		}
	}()
	defer func() { _ = l.Close(); <-done }()
	e := openWith(t, zklock.Config{Servers: []string{l.Addr().String()}})
	_, err = e.Acquire(t.Context(), mine, ttl)
	wantIs(t, err, lockengine.ErrNotSent)
}

// A lock is its owner's alone: no other gets it or releases it, and others are woken when it is
// free.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	servers, r := teststack.ZooKeeper(t), root(t)
	e, other := open(t, r, servers), open(t, r, servers)
	acquire(t, e, mine, ttl)
	_, err := other.Acquire(t.Context(), theirs, ttl)
	if held, ok := errors.AsType[*lockengine.HeldError](err); !ok || held.Holder.Owner != mine.Owner {
		t.Fatalf("another acquires it: %v", err)
	}
	wantIs(t, other.Release(t.Context(), theirs), lockengine.ErrNotHeld)
	woken := make(chan struct{}, 1)
	stop, err := other.Watch(t.Context(), mine.Key, func() { wait.Wake(woken) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	release(t, e, mine)
	testwait.Until(t, "another is woken", func() bool { return len(woken) > 0 })
	acquire(t, other, theirs, ttl)
	wantIs(t, e.Release(t.Context(), mine), lockengine.ErrNotHeld)
	wantHolder(t, other, theirs.Key, theirs.Owner)
	release(t, other, theirs)
}
