package interop_test

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/belaygo/belay/internal/testwait"
)

// A call is a command that a client sent, and what it led to.
type call struct {
	client string
	args   []string
	inner  [][]string // the commands that its script ran
	waits  [][]string // the WAITs that followed on the same connection
}

// monitor shows what all masters are sent.
type monitor struct {
	nodes []*tap
}

func (s *stage) monitor(t *testing.T) *monitor {
	t.Helper()
	m := &monitor{}
	for _, addr := range s.masters(t) {
		m.nodes = append(m.nodes, tapNode(t, addr))
	}
	return m
}

// take returns the calls about key since the last take, and forgets the rest.
func (m *monitor) take(t *testing.T, key string) []call {
	t.Helper()
	for _, node := range m.nodes {
		node.fence(t)
	}
	var calls []call
	for _, node := range m.nodes {
		calls = append(calls, about(key, node.take())...)
	}
	return calls
}

// calls returns the calls about key since the last take.
func (m *monitor) calls(key string) []call {
	var calls []call
	for _, node := range m.nodes {
		calls = append(calls, about(key, node.all())...)
	}
	return calls
}

// about picks the calls that mention key, without those of scripts that the
// server did not know and so did not run. A WAIT belongs to what its connection
// sent before it.
func about(key string, sent []call) []call {
	var calls []call
	last := map[string]int{} // by client: the index in calls if its last call is there
	for _, c := range sent {
		at, ok := last[c.client]
		switch {
		case c.mentions(key) && (!c.isScript() || len(c.inner) > 0):
			last[c.client] = len(calls)
			calls = append(calls, c)
		case ok && c.name() == "wait":
			calls[at].waits = append(calls[at].waits, c.args)
		default:
			delete(last, c.client)
		}
	}
	return calls
}

func (c call) isScript() bool { return strings.HasPrefix(c.name(), "eval") }

func (c call) name() string { return strings.ToLower(c.args[0]) }

func (c call) mentions(text string) bool {
	for _, arg := range c.args[1:] {
		if strings.Contains(arg, text) {
			return true
		}
	}
	return false
}

// tap is a connection in MONITOR mode.
type tap struct {
	addr string
	mu   sync.Mutex
	sent []call
}

func tapNode(t *testing.T, addr string) *tap {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	tp, ended := &tap{addr: addr}, make(chan struct{})
	t.Cleanup(func() {
		conn.Close()
		<-ended
	})
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20) // a line may hold a script
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil || !lines.Scan() || lines.Text() != "+OK" {
		close(ended)
		t.Fatalf("monitor %s: %v, %q", addr, err, lines.Text())
	}
	go func() {
		defer close(ended)
		for lines.Scan() {
			if client, args, ok := parse(lines.Text()); ok {
				tp.add(client, args)
			}
		}
	}()
	return tp
}

// parse takes a line apart: +1700000000.000001 [0 127.0.0.1:5] "get" "x\n".
func parse(line string) (client string, args []string, ok bool) {
	_, line, _ = strings.Cut(line, "[")
	from, quoted, _ := strings.Cut(line, "]")
	_, client, ok = strings.Cut(from, " ")
	for quoted = strings.TrimSpace(quoted); quoted != ""; quoted = strings.TrimSpace(quoted) {
		prefix, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return "", nil, false
		}
		arg, err := strconv.Unquote(prefix)
		if err != nil {
			return "", nil, false
		}
		args, quoted = append(args, arg), quoted[len(prefix):]
	}
	return client, args, ok && len(args) > 0
}

// add notes a command. What a script runs comes right after the script.
func (tp *tap) add(client string, args []string) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if client != "lua" {
		tp.sent = append(tp.sent, call{client: client, args: args})
	} else if n := len(tp.sent); n > 0 {
		tp.sent[n-1].inner = append(tp.sent[n-1].inner, args)
	}
}

// all returns what was sent since the last take.
func (tp *tap) all() []call {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return slices.Clone(tp.sent)
}

// take returns what was sent since the last take.
func (tp *tap) take() []call {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	sent := tp.sent
	tp.sent = nil
	return sent
}

// fence waits until all that the node has executed so far has been seen.
func (tp *tap) fence(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", tp.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	mark := rand.Text()
	if _, err := fmt.Fprintf(conn, "ECHO %s\r\n", mark); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the monitor of "+tp.addr+" sees the mark", func() bool { return len(about(mark, tp.all())) > 0 })
}
