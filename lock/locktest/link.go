package locktest

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// A Fault is a way in which an engine is cut off from its store.
type Fault string

const (
	// RefuseDials cuts all connections, and refuses new ones.
	RefuseDials Fault = "dials are refused"
	// SwallowRequests keeps connections open, and loses what is sent to the store.
	SwallowRequests Fault = "requests are lost"
	// SwallowAnswers passes requests on, and loses what the store sends.
	SwallowAnswers Fault = "answers are lost"
	// CutAfterRequest passes a request on, and cuts the connection before its answer.
	CutAfterRequest Fault = "connections break before the answer"
)

// A Link is a TCP proxy in front of a store. Its method Fault is a Setup.Fault.
type Link struct {
	Addr string // host:port, where it listens

	tb     testing.TB
	target string
	wg     sync.WaitGroup

	mu       sync.Mutex
	fault    Fault        // empty = none
	listener net.Listener // nil while dials are refused
	lines    map[*line]struct{}
}

// A line is one connection through a Link.
type line struct {
	in, out *net.TCPConn
	broken  bool // bytes were lost: it is of no use any more
}

// NewLink returns a Link to target, host:port, that closes when the test ends.
func NewLink(tb testing.TB, target string) *Link {
	tb.Helper()
	k := &Link{tb: tb, Addr: "127.0.0.1:0", target: target, lines: make(map[*line]struct{})}
	if err := k.listen(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		k.Fault(RefuseDials)
		k.wg.Wait()
	})
	return k
}

// Fault has the Link fail until heal is called, which cuts the connections that have
// lost anything.
func (k *Link) Fault(f Fault) (heal func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = f
	if f == RefuseDials {
		_ = k.listener.Close()
		k.cut(func(*line) bool { return true })
	}
	return k.heal
}

func (k *Link) heal() {
	k.tb.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault == RefuseDials {
		var err error
		for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
			if err = k.listen(); err == nil { // or somebody has borrowed the port
				break
			}
		}
		if err != nil {
			k.tb.Fatal(err)
		}
	}
	k.fault = ""
	k.cut(func(l *line) bool { return l.broken })
}

// cut ends connections. The caller holds k.mu.
func (k *Link) cut(these func(*line) bool) {
	for l := range k.lines {
		if these(l) {
			_ = l.in.Close()
			_ = l.out.Close()
		}
	}
}

// listen accepts connections from now on.
func (k *Link) listen() error {
	listener, err := net.Listen("tcp", k.Addr) //nolint:noctx // it does not wait
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	k.listener, k.Addr = listener, listener.Addr().String()
	k.wg.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			k.wg.Go(func() { k.serve(in.(*net.TCPConn)) })
		}
	})
	return nil
}

func (k *Link) serve(in *net.TCPConn) {
	defer in.Close()
	out, err := net.Dial("tcp", k.target) //nolint:noctx // it is on this host
	if err != nil {
		return
	}
	defer out.Close()
	l := &line{in: in, out: out.(*net.TCPConn)}
	if !k.add(l) {
		return
	}
	defer k.remove(l)
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		defer in.Close()
		k.pass(l, l.out, l.in, SwallowAnswers)
	}()
	k.pass(l, l.in, l.out, SwallowRequests)
	_ = l.out.CloseWrite() // what was passed on is executed nevertheless
	<-answers
}

// pass copies from one end to the other, except during the fault that loses it.
func (k *Link) pass(l *line, from, to *net.TCPConn, loses Fault) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		fault := k.now(l, loses)
		if fault == loses {
			continue
		}
		if fault == CutAfterRequest {
			_ = l.in.Close()
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// now returns the fault of this moment, and notes if it breaks l.
func (k *Link) now(l *line, loses Fault) Fault {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault == loses {
		l.broken = true
	}
	return k.fault
}

func (k *Link) add(l *line) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault == RefuseDials {
		return false
	}
	k.lines[l] = struct{}{}
	return true
}

func (k *Link) remove(l *line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.lines, l)
}
