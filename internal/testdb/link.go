package testdb

import (
	"bytes"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// A Link is a TCP proxy in front of the database that can cut its connections
// when a COMMIT comes by, or hold it, and that can lose the answer to any
// statement.
type Link struct {
	Addr   string
	Before atomic.Bool // cut without passing the COMMIT on
	After  atomic.Bool // pass it on, and cut instead of its answer
	Stall  atomic.Bool // cut the client only: the server goes on waiting for it

	Away   atomic.Bool  // new connections are reset, as if nobody listened
	Resets atomic.Int64 // how many have been

	before  atomic.Pointer[func([]byte)] // is called before each packet from a client
	hold    atomic.Pointer[hold]
	swallow atomic.Pointer[swallow]
	delay   atomic.Pointer[Delay] // of the next COMMIT
	gate    atomic.Pointer[Delay] // of new connections
	target  atomic.Pointer[string]
	ended   chan struct{}
}

type hold struct{ reached, pass chan struct{} }

type swallow struct {
	text string
	done chan struct{}
}

// Swallow loses the answer to the next packet that contains text, and whatever
// the server sends on that connection from then on. The connection stays open
// until the client closes it or the test ends. The returned channel is closed
// when the packet has come by.
func (k *Link) Swallow(text string) <-chan struct{} {
	s := &swallow{text, make(chan struct{})}
	k.swallow.Store(s)
	return s.done
}

// Interrupt has f called before each packet from a client is passed on, until stop is.
func (k *Link) Interrupt(f func(packet []byte)) (stop func()) {
	k.before.Store(&f)
	return func() { k.before.Store(nil) }
}

// Hold has the next COMMIT wait for pass. reached is closed when it comes by.
func (k *Link) Hold() (reached <-chan struct{}, pass func()) {
	h := &hold{make(chan struct{}), make(chan struct{})}
	k.hold.Store(h)
	return h.reached, sync.OnceFunc(func() { close(h.pass) })
}

// A line is one connection through a link.
type line struct {
	in, out net.Conn
	cut     atomic.Bool   // instead of passing the next answer on
	muted   atomic.Bool   // no answer is passed on
	down    chan struct{} // closed when the server sends no more
}

// NewLink returns a link to target, host:port, that closes when the test ends.
func NewLink(tb testing.TB, target string) *Link {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	k := &Link{Addr: l.Addr().String(), ended: make(chan struct{})}
	k.Lead(target)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { k.serve(in) })
		}
	})
	tb.Cleanup(func() {
		l.Close()
		close(k.ended)
		wg.Wait()
	})
	return k
}

// Lead has new connections lead to another target, host:port.
func (k *Link) Lead(target string) { k.target.Store(&target) }

// serve connects in with the target until one of the two, or the test, ends.
func (k *Link) serve(in net.Conn) {
	defer in.Close()
	if k.Away.Load() {
		_ = in.(*net.TCPConn).SetLinger(0)
		k.Resets.Add(1)
		return
	}
	if d := k.gate.Load(); d != nil && !d.pass(k.ended) {
		return
	}
	out, err := net.Dial("tcp", *k.target.Load())
	if err != nil {
		return
	}
	l := &line{in: in, out: out, down: make(chan struct{})}
	over := make(chan struct{})
	go func() {
		select {
		case <-k.ended:
			in.Close()
		case <-over:
		}
	}()
	go l.pump()
	k.up(l)
	<-l.down
	close(over)
}

func (k *Link) up(l *line) {
	defer l.in.Close()
	defer l.out.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.in.Read(buf)
		if err != nil {
			return
		}
		if f := k.before.Load(); f != nil {
			(*f)(buf[:n])
		}
		if s := k.swallow.Load(); s != nil && bytes.Contains(buf[:n], []byte(s.text)) && k.swallow.CompareAndSwap(s, nil) {
			l.muted.Store(true)
			close(s.done)
		}
		if commits(buf[:n]) {
			if h := k.hold.Swap(nil); h != nil {
				close(h.reached)
				<-h.pass
			}
			if d := k.delay.Swap(nil); d != nil {
				k.gate.Store(d)
				l.cut.Store(true)
				l.in.Close()
				d.commit(k.ended, l.out, buf[:n], l.down)
				return
			}
			switch {
			case k.Before.Load():
				return
			case k.Stall.Load():
				l.in.Close()
				<-k.ended
				return
			case k.After.Load():
				l.cut.Store(true)
			}
		}
		if _, err := l.out.Write(buf[:n]); err != nil {
			return
		}
	}
}

// pump passes answers on.
func (l *line) pump() {
	defer close(l.down)
	defer l.in.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.out.Read(buf)
		if err != nil || l.cut.Load() {
			return
		}
		if l.muted.Load() {
			continue
		}
		if _, err := l.in.Write(buf[:n]); err != nil {
			return
		}
	}
}

// commits reports whether a packet is a COMMIT, as MySQL and PostgreSQL have it; READ
// COMMITTED is none.
func commits(packet []byte) bool {
	return bytes.Contains(packet, []byte("COMMIT")) && !bytes.Contains(packet, []byte("COMMITTED"))
}

// Through returns dsn, which leads to k's target, by way of k.
func (k *Link) Through(tb testing.TB, dsn string) string {
	tb.Helper()
	return By(tb, dsn, k.Addr)
}

// By returns dsn with another address, host:port.
func By(tb testing.TB, dsn, addr string) string {
	tb.Helper()
	if u, ok := postgresURL(dsn); ok {
		u.Host = addr
		return u.String()
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Addr = addr
	return cfg.FormatDSN()
}

// AddrOf returns the address, host:port, in dsn.
func AddrOf(tb testing.TB, dsn string) string {
	tb.Helper()
	if u, ok := postgresURL(dsn); ok {
		return u.Host
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	return cfg.Addr
}

// IsPostgres reports whether dsn is of PostgreSQL.
func IsPostgres(dsn string) bool { _, ok := postgresURL(dsn); return ok }

func postgresURL(dsn string) (*url.URL, bool) {
	if !strings.HasPrefix(dsn, "postgres") {
		return nil, false
	}
	u, err := url.Parse(dsn)
	return u, err == nil
}
