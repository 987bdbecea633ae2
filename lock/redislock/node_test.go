package redislock_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/redislock"
)

// Replies of a node that are none. hangUp may follow another.
const (
	hangUp   = "\x00hang up"
	noAnswer = "\x00no answer"
)

// node is a server that says that it is a cluster of one, and answers scripts
// as a test wants.
type node struct {
	addr  string
	reply func(args []string) string // to a script; set it before the first use
	other map[string]string          // replies to other commands, by name; OK without
	mute  bool                       // answers nothing at all
	slow  time.Duration              // how long it takes to tell the slot map

	mu     sync.Mutex
	master string // who has all slots, as it says; empty = itself
	secret bool   // it does not say that
	seen   map[string]int
	order  []string // of names
}

func newNode(tb testing.TB) *node {
	tb.Helper()
	n := &node{seen: make(map[string]int)}
	n.addr = serve(tb, n.talk)
	return n
}

// set changes what n does.
func (n *node) set(change func(*node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// count returns how often a command was received.
func (n *node) count(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen[name]
}

// inOrder returns those of the given commands that were received.
func (n *node) inOrder(names ...string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.order), func(name string) bool { return !slices.Contains(names, name) })
}

func (n *node) talk(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		answer := n.answer(args)
		if args[0] == "cluster" {
			<-time.After(n.slow)
		}
		answer, last := strings.CutSuffix(answer, hangUp)
		if answer == noAnswer {
			continue
		}
		if _, err := io.WriteString(conn, answer); err != nil || last {
			return
		}
	}
}

func (n *node) answer(args []string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.ToLower(args[0])
	n.seen[name]++
	n.order = append(n.order, name)
	switch {
	case n.mute, n.secret && name == "cluster":
		return noAnswer
	case name == "evalsha" || name == "eval":
		return n.reply(args)
	case name == "hello":
		return "-ERR unknown command\r\n" // RESP2 will do
	case name == "cluster":
		host, port, _ := net.SplitHostPort(cmp.Or(n.master, n.addr))
		return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%s\r\n", len(host), host, port)
	}
	if reply, ok := n.other[name]; ok {
		return reply
	}
	return "+OK\r\n"
}

func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}

func readLength(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("got %q, want %c", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// serve runs talk on every connection to the address that it returns. When the
// test ends, all connections are closed and waited for.
func serve(tb testing.TB, talk func(net.Conn)) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
	)
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				talk(conn)
			})
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return listener.Addr().String()
}

// proxy stands between a client and the nodes of the cluster, and can swallow
// what they answer.
type proxy struct {
	tb      testing.TB
	first   string
	swallow atomic.Bool
	mu      sync.Mutex
	closed  bool
	addrs   map[string]string // of a node: where the proxy listens for it
}

func newProxy(tb testing.TB, first string) *proxy {
	tb.Helper()
	p := &proxy{tb: tb, first: first, addrs: make(map[string]string)}
	tb.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closed = true
	})
	return p
}

// openThrough returns an engine all of whose connections go through p.
func openThrough(tb testing.TB, p *proxy) redislock.Engine {
	tb.Helper()
	e, err := redislock.Open(&redis.UniversalOptions{IsClusterMode: true, Addrs: []string{p.first}, Dialer: p.dial}, redislock.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// dial connects to the proxy that stands before the node at addr.
func (p *proxy) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	p.mu.Lock()
	if p.closed { // a slot map is still being reloaded
		p.mu.Unlock()
		return nil, net.ErrClosed
	}
	before, ok := p.addrs[addr]
	if !ok {
		before = serve(p.tb, func(client net.Conn) { p.pass(client, addr) })
		p.addrs[addr] = before
	}
	p.mu.Unlock()
	var d net.Dialer
	return d.DialContext(ctx, network, before)
}

// pass copies both ways until one side ends.
func (p *proxy) pass(client net.Conn, addr string) {
	server, err := net.Dial("tcp", addr)
	if err != nil {
		p.tb.Errorf("proxy: %v", err)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	buf := make([]byte, 4096)
	for {
		n, err := server.Read(buf)
		if err != nil {
			break
		}
		if p.swallow.Load() {
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			break
		}
	}
	client.Close()
	server.Close()
	wg.Wait()
}
