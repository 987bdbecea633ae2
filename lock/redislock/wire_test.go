package redislock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// A wire is what lies between an engine and the cluster. It can be cut in the
// middle of a request, and swallow what is sent to a node.
type wire struct {
	mu     sync.Mutex
	hole   string // a node that nothing reaches any more
	cut    func(request []byte) bool
	caught chan *request
}

// A request that was caught: its connection was cut before a byte of it arrived.
type request struct {
	conn  net.Conn // the server's end
	bytes []byte
}

// openWired returns an engine whose connections go through a wire.
func openWired(t *testing.T) (redislock.Engine, *wire) {
	t.Helper()
	w := &wire{caught: make(chan *request, 1)}
	opts := options(teststack.Redis(t)...)
	opts.Dialer = w.dial
	e, err := redislock.Open(opts, redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e, w
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if w.swallows(addr) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &wiredConn{Conn: conn, wire: w, addr: addr}, nil
}

func (w *wire) swallows(addr string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hole == addr
}

// setHole makes a node a black hole, none if addr is empty.
func (w *wire) setHole(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hole = addr
}

// cutNext has the connection cut that next carries a script with so many
// arguments about key.
func (w *wire) cutNext(args int, key string) {
	begin, name := fmt.Appendf(nil, "*%d\r\n$7\r\nevalsha\r\n", args), []byte("\r\n"+key+"\r\n")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = func(b []byte) bool { return bytes.HasPrefix(b, begin) && bytes.Contains(b, name) }
}

const acquireArgs, releaseArgs = 8, 10 // of a caller that does not wait

// catch reports whether conn is to be cut, instead of sending b on it.
func (w *wire) catch(conn net.Conn, b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut == nil || !w.cut(b) {
		return false
	}
	w.cut = nil
	w.caught <- &request{conn, bytes.Clone(b)}
	return true
}

// deliver lets n bytes of the request reach the server, which sees the end of
// the connection when it has answered or, if there is nothing to answer, at once.
func (r *request) deliver(t *testing.T, n int) {
	t.Helper()
	defer r.conn.Close()
	if _, err := r.conn.Write(r.bytes[:n]); err != nil {
		t.Fatal(err)
	}
	if n < len(r.bytes) {
		return
	}
	_ = r.conn.SetReadDeadline(time.Now().Add(limit))
	if _, err := r.conn.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the late request was not answered: %v", err)
	}
}

type wiredConn struct {
	net.Conn
	wire   *wire
	addr   string
	broken atomic.Bool
}

func (c *wiredConn) Write(b []byte) (int, error) {
	if c.wire.catch(c.Conn, b) {
		c.broken.Store(true)
		return len(b), nil
	}
	if c.wire.swallows(c.addr) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *wiredConn) Read(b []byte) (int, error) {
	if c.broken.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

// Close leaves a connection that was cut open at the server's end.
func (c *wiredConn) Close() error {
	if c.broken.Load() {
		return nil
	}
	return c.Conn.Close()
}

// free waits until nobody holds key, far sooner than it would expire.
func free(t *testing.T, e redislock.Engine, key string) {
	t.Helper()
	testwait.Until(t, key+" is free", func() bool {
		h, err := e.Inspect(t.Context(), key)
		return err == nil && h.Owner == ""
	})
}

// The connection is cut in the middle of an acquire. Whatever part of it reaches
// the server, and however late, the caller gets the lock, and nobody who has not
// asked for it keeps it.
func TestCutInAcquire(t *testing.T) {
	for name, part := range map[string]float64{"all of it arrives late": 1, "half of it arrives": 0.5} {
		t.Run(name, func(t *testing.T) {
			e, w := openWired(t)
			l, other := newLocker(t, e, lock.Config{TTL: 5 * time.Minute}), open(t)
			key := teststack.Key(t, "cut")
			if err := lease(t, l, key).Release(t.Context()); err != nil { // the script is known there
				t.Fatal(err)
			}
			w.cutNext(acquireArgs, key)
			held, err := l.Acquire(t.Context(), key) // it asks again
			if err != nil {
				t.Fatal(err)
			}
			if holder, err := other.Inspect(t.Context(), key); err != nil || holder.Owner != held.Grant().Owner {
				t.Errorf("held by %+v (%v), want %s", holder, err, held.Grant().Owner)
			}
			if err := held.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
			r := <-w.caught
			r.deliver(t, int(part*float64(len(r.bytes))))
			free(t, other, key)
		})
	}
}

// A caller who does not wait is told that the engine has not answered. What
// comes late is released again.
func TestCutInTryAcquire(t *testing.T) {
	e, w := openWired(t)
	l, other := newLocker(t, e, lock.Config{TTL: 5 * time.Minute}), open(t)
	key := teststack.Key(t, "cut")
	if err := lease(t, l, key).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.cutNext(acquireArgs, key)
	_, err := l.TryAcquire(t.Context(), key)
	wantIs(t, err, lockengine.ErrNoAnswer)
	r := <-w.caught
	r.deliver(t, len(r.bytes))
	free(t, other, key)
}

// The connection is cut in the middle of a release. The lock is free all the
// same, and the first copy, when it comes late, does not free another's.
func TestCutInRelease(t *testing.T) {
	e, w := openWired(t)
	l := newLocker(t, e, lock.Config{TTL: 5 * time.Minute})
	other := open(t)
	key := teststack.Key(t, "cut")
	if err := lease(t, l, key).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := lease(t, l, key)
	w.cutNext(releaseArgs, key)
	wantIs(t, held.Release(t.Context()), lockengine.ErrNoAnswer)
	next, err := newLocker(t, other, lock.Config{}).Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	r := <-w.caught
	r.deliver(t, len(r.bytes))
	if holder, err := other.Inspect(t.Context(), key); err != nil || holder.Owner != next.Grant().Owner {
		t.Errorf("held by %+v (%v), want %s", holder, err, next.Grant().Owner)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// A node from which not even a refusal comes. Its locks are not believed in for
// longer than they last; nobody else notices; and it is over when it is over.
func TestBlackHole(t *testing.T) {
	const ttl = 2 * time.Second
	e, w := openWired(t)
	l, c := newLocker(t, e, lock.Config{TTL: ttl}), cluster(t)
	here := teststack.Key(t, "here")
	there := elsewhere(t, c, here, 2)
	held, safe := lease(t, l, here), lease(t, l, there[0])
	_, stop := load(t, there[1:], func(key string) error {
		return cycle(e, lockengine.Request{Key: key, Owner: "me:1"})
	})
	w.setHole(masterOf(t, c, here))
	<-held.Context().Done()
	wantIs(t, context.Cause(held.Context()), lock.ErrLost)
	if over := time.Since(held.Grant().Deadline); over < 0 {
		t.Errorf("lost %v before its deadline, though nobody said so", -over)
	}
	_, err := l.TryAcquire(t.Context(), here)
	if err == nil {
		t.Fatal("a black hole granted a lock")
	}
	wantIs(t, held.Release(t.Context()), lock.ErrLost)
	if err := safe.Err(); err != nil {
		t.Errorf("a lock on another shard: %v", err)
	}
	w.setHole("")
	again, err := l.Acquire(t.Context(), here)
	if err != nil {
		t.Fatalf("when the node is back: %v", err)
	}
	for _, lease := range []*lock.Lease{again, safe} {
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
	if errs := stop(); len(errs) > 0 {
		t.Errorf("%d errors on another shard, the first: %v", len(errs), errs[0])
	}
}
