package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
)

// TestIPv6: a server, and a cluster that announces itself by an address of IPv6.
func TestIPv6(t *testing.T) {
	t.Parallel()
	s := teststack.StartRedis(t, teststack.Volatile+"bind 127.0.0.1 ::1\n")
	want := net.JoinHostPort("::1", s.Port)
	if place := handOver(t, openURL(t, "redis://"+want)); place.Node != want {
		t.Errorf("granted at %s, want %s", place.Node, want)
	}
	c := teststack.StartRedis(t, teststack.Volatile+"bind 127.0.0.1 ::1\ncluster-enabled yes\ncluster-announce-ip ::1\n")
	c.Must("cluster", "addslotsrange", 0, 16383)
	testwait.Until(t, "the cluster is up", func() bool {
		return strings.Contains(c.Do("cluster", "info").String(), "cluster_state:ok")
	})
	want = net.JoinHostPort("::1", c.Port)
	if place := handOver(t, openURL(t, "redis+cluster://[::1]:1,"+want)); place.Node != want {
		t.Errorf("granted at %s, want %s", place.Node, want)
	}
}

// TestNameGetsAnotherAddress: the master behind a name becomes a replica, which its connections
// survive. Requests are rejected until the name has the address of the new master, and use that one
// from then on, as each new connection looks the name up.
func TestNameGetsAnotherAddress(t *testing.T) {
	t.Parallel()
	first := teststack.StartRedis(t, teststack.Volatile)
	second := teststack.StartRedis(t, teststack.Volatile+"replicaof 127.0.0.1 "+first.Port+"\n")
	var address atomic.Value
	address.Store("127.0.0.1")
	names := serveNames(t, func() net.IP { return net.ParseIP(address.Load().(string)) })
	servers := map[string]string{"127.0.0.1": first.Addr, "127.0.0.2": second.Addr}
	e := openWith(t, &redis.UniversalOptions{Addrs: []string{"redis.test:6379"}, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		name, _, _ := net.SplitHostPort(addr)
		found, err := names.LookupHost(ctx, name)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, servers[found[0]])
	}})
	acquire(t, e, hold)
	testwait.Until(t, "the replica has the lock", func() bool { return second.Do("exists", hold.Key).Val() == int64(1) })
	second.Must("replicaof", "no", "one")
	first.Must("replicaof", "127.0.0.1", second.Port)
	free := lockengine.Request{Key: "free", Owner: "me:2"}
	testwait.Until(t, "the replica rejects a request", func() bool { // a busy machine may be slow to connect
		_, err := e.Acquire(t.Context(), free, ttl)
		if !errors.Is(err, lockengine.ErrNotSent) {
			t.Fatalf("Acquire: %v, want %v", err, lockengine.ErrNotSent)
		}
		return strings.Contains(err.Error(), "READONLY")
	})

	address.Store("127.0.0.2")
	testwait.Until(t, "the new master grants a lock", func() bool {
		_, err := e.Acquire(t.Context(), free, ttl)
		return err == nil
	})
	if err := e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
	first.Kill()
	release(t, e, hold)
	release(t, e, free)
}

// serveNames answers questions for the address of any name, over UDP.
func serveNames(t *testing.T, address func() net.IP) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for buf := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(answerTo(buf[:n], address()), from)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answerTo is the answer of a name server: the address, or nothing to a question for one of IPv6.
func answerTo(question []byte, address net.IP) []byte {
	const header, typeA = 12, 1
	end := header + bytes.IndexByte(question[header:], 0) + 5 // the name, its type and its class
	answer := append([]byte(nil), question[:end]...)
	copy(answer[2:header], []byte{0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	if question[end-3] == typeA {
		answer[7] = 1
		answer = append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4) // of the name above, not to be kept
		answer = append(answer, address.To4()...)
	}
	return answer
}

// TestSlowNetwork: with 30 ms on each way, a cluster is not taken for one that does not answer. A
// machine that has other work may make that a second now and then.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	e := openWith(t, &redis.UniversalOptions{Addrs: teststack.Redis(t), IsClusterMode: true, Dialer: slowDial(60 * time.Millisecond)})
	r := lockengine.Request{Key: teststack.Key(t, "slow"), Owner: "me:1"}
	for range 3 {
		testwait.Until(t, "the lock is acquired and released", func() bool {
			_, err := e.Acquire(t.Context(), r, ttl)
			return err == nil && e.Release(t.Context(), r) == nil
		})
	}
	testwait.Until(t, "the key is watched", func() bool {
		stop, err := e.Watch(t.Context(), r.Key, func() {})
		if err == nil {
			stop()
		}
		return err == nil
	})
}

// slowDial returns a Dialer of connections whose answers come d after their questions at the earliest.
func slowDial(d time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		<-time.After(d)
		return &slowConn{Conn: nc, delay: d}, nil
	}
}

// A slowConn delivers what it reads late.
type slowConn struct {
	net.Conn
	delay time.Duration
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		<-time.After(c.delay)
	}
	return n, err
}
