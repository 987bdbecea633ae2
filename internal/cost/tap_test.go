package cost_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// A request is one statement or command, as it was sent.
type request struct {
	server string // redis or sql
	text   string
	joins  bool // the trip of the request before it
}

// A recorder notes requests in the order in which they are sent.
type recorder struct {
	mu   sync.Mutex
	on   bool
	sent []request
}

// record returns what is sent while f runs.
func (r *recorder) record(f func() error) ([]request, error) {
	r.set(true)
	err := f()
	return r.set(false), err
}

// set starts or stops noting, and returns what was noted before.
func (r *recorder) set(on bool) []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.on, r.sent = on, nil
	return sent
}

func (r *recorder) note(q request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on {
		r.sent = append(r.sent, q)
	}
}

// A decoder returns the requests that are complete with what was sent last. Each connection has
// its own.
type decoder interface {
	decode(sent []byte) []string
}

// dial returns a function that connects, and notes what is sent to a server.
func (r *recorder) dial(server string, newDecoder func() decoder) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &tap{TCPConn: conn.(*net.TCPConn), to: r, server: server, decoder: newDecoder()}, nil
	}
}

// A tap is a connection that notes what is sent. A trip begins with the first request after an
// answer.
type tap struct {
	*net.TCPConn
	to      *recorder
	server  string
	decoder decoder
	waits   atomic.Bool // for an answer to a request
}

func (t *tap) Write(b []byte) (int, error) {
	for _, text := range t.decoder.decode(b) {
		t.to.note(request{server: t.server, text: text, joins: t.waits.Swap(true)})
	}
	return t.TCPConn.Write(b)
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.TCPConn.Read(b)
	if n > 0 {
		t.waits.Store(false)
	}
	return n, err
}
