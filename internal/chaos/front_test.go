package chaos_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
)

// A front is what stands before the nodes of a bed, as a virtual address or a balancer does:
// it leads each connection to a node that takes writes now, and cuts those to a node that
// does not any more. It has an address for each node, whose connections it leads there if
// several take writes; where one does, all lead to that one, until it doesn't.
type front struct {
	addrs  []string // its own, one for each node
	nodes  []string // theirs
	spread bool     // several take writes
	ended  chan struct{}

	mu     sync.Mutex
	takes  []bool // whether a node takes writes
	writer int    // where one does
	lines  map[*frontLine]bool
}

// A frontLine is a connection through a front.
type frontLine struct {
	node    int
	in, out net.Conn
}

// asking is the pause between two questions to a node whether it takes writes.
const asking = 200 * time.Millisecond

// newFront returns a front of nodes with these addresses. asks reports whether a node takes
// writes.
func newFront(tb testing.TB, nodes []string, spread bool, asks func(ctx context.Context, node int) bool) *front {
	tb.Helper()
	f := &front{nodes: nodes, spread: spread, ended: make(chan struct{}), takes: make([]bool, len(nodes)), lines: make(map[*frontLine]bool)}
	var running sync.WaitGroup
	var listeners []net.Listener
	for n := range nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		listeners, f.addrs = append(listeners, l), append(f.addrs, l.Addr().String())
		running.Go(func() { f.ask(n, asks) })
		running.Go(func() {
			for {
				in, err := l.Accept()
				if err != nil {
					return
				}
				running.Go(func() { f.serve(in, n) })
			}
		})
	}
	tb.Cleanup(func() {
		close(f.ended)
		for _, l := range listeners {
			_ = l.Close()
		}
		f.cutAll()
		running.Wait()
	})
	return f
}

// ask asks a node until the test ends.
func (f *front) ask(node int, asks func(context.Context, int) bool) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		takes := asks(ctx, node)
		cancel()
		f.set(node, takes)
		select {
		case <-time.After(asking):
		case <-f.ended:
			return
		}
	}
}

// set notes whether a node takes writes.
func (f *front) set(node int, takes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takes[node] = takes
	if next := slices.Index(f.takes, true); !f.takes[f.writer] && next >= 0 {
		f.writer = next
	}
	f.cutOthers()
}

// cutOthers cuts the connections to nodes that none is led to.
func (f *front) cutOthers() {
	for l := range f.lines {
		if !f.leads(l.node) {
			l.cut()
		}
	}
}

// move leads all connections to a node, also if the present one believes that it takes
// writes still. It reports false if the node takes none.
func (f *front) move(node int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.takes[node] {
		return false
	}
	f.writer = node
	f.cutOthers()
	return true
}

// leads reports whether connections may go to a node.
func (f *front) leads(node int) bool { return f.takes[node] && (f.spread || node == f.writer) }

// choose returns the node for a new connection, which prefers one.
func (f *front) choose(prefers int) (node int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.nodes {
		if n := (prefers + i) % len(f.nodes); f.leads(n) {
			return n, true
		}
	}
	return 0, false
}

// add notes a line, unless its node takes no writes any more.
func (f *front) add(l *frontLine) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.ended:
		return false
	default:
	}
	if !f.leads(l.node) {
		return false
	}
	f.lines[l] = true
	return true
}

func (f *front) remove(l *frontLine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.lines, l)
}

func (f *front) cutAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.lines {
		l.cut()
	}
}

func (l *frontLine) cut() { _, _ = l.in.Close(), l.out.Close() }

// serve connects in with a node until one of the two ends.
func (f *front) serve(in net.Conn, prefers int) {
	defer in.Close()
	node, ok := f.choose(prefers)
	if !ok {
		return
	}
	out, err := net.DialTimeout("tcp", f.nodes[node], time.Second)
	if err != nil {
		return
	}
	l := &frontLine{node, in, out}
	defer l.cut()
	if !f.add(l) {
		return
	}
	defer f.remove(l)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		l.cut()
	})
	_, _ = io.Copy(out, in)
	l.cut()
	back.Wait()
}

// stands reports whether connections have somewhere to go: with all, that every node does
// what it should.
func (f *front) stands(all bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.takes, true) && (!all || !f.spread || !slices.Contains(f.takes, false))
}

// present returns the node that connections which prefer none go to, or -1.
func (f *front) present() int {
	if n, ok := f.choose(0); ok {
		return n
	}
	return -1
}

// through returns DSNs of the nodes by way of the front.
func (f *front) through(tb testing.TB, dsns []string) (by []string) {
	tb.Helper()
	for i, addr := range f.addrs {
		by = append(by, testdb.By(tb, dsns[i], addr))
	}
	return by
}

// TestFront has nodes that say their numbers, and take writes or not.
func TestFront(t *testing.T) {
	for _, tt := range []struct {
		spread bool
		then   []frontCase
	}{
		{false, []frontCase{
			{"one leads all", []bool{false, true, false}, "111"},
			{"as long as it takes writes", []bool{true, true, true}, "111"},
			{"then the next", []bool{true, false, true}, "000"},
			{"or nobody", []bool{false, false, false}, "---"},
		}},
		{true, []frontCase{
			{"each has its own", []bool{true, true, true}, "012"},
			{"or the next", []bool{false, true, true}, "112"},
			{"or the one that is left", []bool{false, true, false}, "111"},
			{"its own again", []bool{true, true, false}, "010"},
		}},
	} {
		t.Run(fmt.Sprintf("spread=%t", tt.spread), func(t *testing.T) {
			var mu sync.Mutex
			var takes []bool
			f := newFront(t, []string{sayer(t, "0"), sayer(t, "1"), sayer(t, "2")}, tt.spread, func(_ context.Context, n int) bool {
				mu.Lock()
				defer mu.Unlock()
				return takes != nil && takes[n]
			})
			kept := make(map[net.Conn]int)
			for _, then := range tt.then {
				mu.Lock()
				takes = then.takes
				mu.Unlock()
				testwait.Until(t, "the front knows who takes writes", func() bool {
					f.mu.Lock()
					defer f.mu.Unlock()
					return slices.Equal(f.takes, then.takes)
				})
				said := ""
				for _, addr := range f.addrs {
					c, says := dialFront(t, addr)
					said += says
					if says != "-" {
						kept[c] = int(says[0] - '0')
					}
				}
				if said != then.want {
					t.Errorf("%s: %s answer, want %s", then.name, said, then.want)
				}
				for c, n := range kept {
					if !then.takes[n] {
						if _, err := c.Read(make([]byte, 1)); err == nil {
							t.Errorf("%s: a connection to %d, which takes no writes, is not cut", then.name, n)
						}
						delete(kept, c)
					}
				}
			}
		})
	}
}

type frontCase struct {
	name  string
	takes []bool
	want  string // who answers at each address, "-" nobody
}

// sayer returns the address of a server that says its name and waits.
func sayer(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, name)
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return l.Addr().String()
}

// dialFront returns a connection and what it says, or "-".
func dialFront(t *testing.T, addr string) (c net.Conn, says string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	text := make([]byte, 1)
	if _, err := io.ReadFull(conn, text); err != nil {
		return nil, "-"
	}
	return conn, string(text)
}

// TestFrontMoves has two nodes that both take writes, and the second one promoted.
func TestFrontMoves(t *testing.T) {
	f := newFront(t, []string{sayer(t, "0"), sayer(t, "1")}, false, func(context.Context, int) bool { return true })
	testwait.Until(t, "both take writes", func() bool { return f.move(1) && f.move(0) })
	before, says := dialFront(t, f.addrs[1])
	if says != "0" || !f.move(1) {
		t.Fatalf("%s answers, want 0", says)
	}
	if _, err := before.Read(make([]byte, 1)); err == nil {
		t.Error("a connection to the former writer is not cut")
	}
	if _, says = dialFront(t, f.addrs[0]); says != "1" {
		t.Errorf("%s answers, want 1", says)
	}
}
