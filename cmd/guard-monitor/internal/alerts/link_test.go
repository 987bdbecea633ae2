package alerts_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// The states of a link.
const (
	sound    = iota // passes everything on
	refusing        // refuses connections
	dropping        // accepts connections and drops them at once
	halfOpen        // keeps connections open and passes nothing on
	deaf            // passes requests on, and drops their connections at the answer
	cutting         // drops connections near the end of what the reporters send
)

// A link is a TCP proxy that makes the faults of a network.
type link struct {
	t    *testing.T
	addr string
	wg   sync.WaitGroup

	mu       sync.Mutex
	target   string // host:port, or empty
	changed  *sync.Cond
	state    int
	listener net.Listener
	conns    map[net.Conn]struct{}
	dropped  int // connections, in the states dropping, deaf and cutting
}

// newLink returns a sound link to target, host:port, that ends with the test. Without
// a target it drops connections.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	l := &link{t: t, target: target, addr: "127.0.0.1:0", conns: map[net.Conn]struct{}{}, state: refusing}
	l.changed = sync.NewCond(&l.mu)
	l.become(sound)
	t.Cleanup(func() {
		l.become(refusing)
		l.wg.Wait()
	})
	return l
}

// lead leads connections to another target from now on.
func (l *link) lead(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

func (l *link) dial() (net.Conn, error) {
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	return net.Dial("tcp", target)
}

// become changes the state. Connections survive only from sound to halfOpen.
func (l *link) become(state int) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if state != halfOpen {
		for c := range l.conns {
			c.Close()
		}
		clear(l.conns)
	}
	l.state = state
	l.changed.Broadcast()
	switch {
	case state == refusing && l.listener != nil:
		l.listener.Close()
		l.listener = nil
	case state != refusing && l.listener == nil:
		listener, err := net.Listen("tcp", l.addr)
		if err != nil {
			l.t.Fatal(err)
		}
		l.listener, l.addr = listener, listener.Addr().String()
		l.wg.Go(func() { l.accept(listener) })
	}
}

func (l *link) accept(listener net.Listener) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		if !l.keep(in) {
			in.Close()
			continue
		}
		out, err := l.dial()
		if err != nil {
			in.Close()
			continue
		}
		if !l.keep(out) {
			in.Close()
			out.Close()
			continue
		}
		l.wg.Go(func() { l.pipe(in, out, deaf) })
		l.wg.Go(func() { l.pipe(out, in, cutting) })
	}
}

// keep reports whether c may live.
func (l *link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == dropping {
		l.dropped++
	}
	if l.state == dropping || l.state == refusing {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

// pipe passes everything on, unless the state is the one that breaks this direction.
func (l *link) pipe(to, from net.Conn, breaks int) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(gate{l, to, breaks}, from)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, from)
}

// A gate lets nothing through while the link is half open, and not all while its
// direction is broken.
type gate struct {
	l      *link
	to     net.Conn
	breaks int
}

func (g gate) Write(b []byte) (int, error) {
	g.l.mu.Lock()
	for g.l.state == halfOpen {
		g.l.changed.Wait()
	}
	broken := g.l.state == g.breaks
	if broken {
		g.l.dropped++
	}
	g.l.mu.Unlock()
	switch {
	case broken && g.breaks == deaf:
		return 0, errBroken
	case broken:
		_, _ = g.to.Write(b[:max(len(b)-10, 0)])
		return 0, errBroken
	}
	return g.to.Write(b)
}

var errBroken = errors.New("the link is broken")

// drops returns how many connections were dropped so far.
func (l *link) drops() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}
