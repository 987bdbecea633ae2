package alerts_test

import (
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
)

// A link is a TCP proxy that makes the faults of a network.
type link struct {
	t      *testing.T
	target string
	addr   string
	wg     sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	state    int
	listener net.Listener
	conns    map[net.Conn]struct{}
	dropped  int // connections, in state dropping
}

// newLink returns a sound link to target, host:port, that ends with the test.
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
		out, err := net.Dial("tcp", l.target)
		if err != nil {
			in.Close()
			continue
		}
		if !l.keep(out) {
			in.Close()
			out.Close()
			continue
		}
		l.wg.Go(func() { l.pipe(in, out) })
		l.wg.Go(func() { l.pipe(out, in) })
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

func (l *link) pipe(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(gate{l, to}, from)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, from)
}

// A gate lets nothing through while the link is half open.
type gate struct {
	l  *link
	to net.Conn
}

func (g gate) Write(b []byte) (int, error) {
	g.l.mu.Lock()
	for g.l.state == halfOpen {
		g.l.changed.Wait()
	}
	g.l.mu.Unlock()
	return g.to.Write(b)
}

// drops returns how many connections were dropped so far.
func (l *link) drops() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}
