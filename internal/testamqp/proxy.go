// Package testamqp stands between tests and a broker: it makes the faults of a
// network, and speaks TLS.
//
//	net, through := testamqp.NewProxy(t, teststack.AMQP(t))
//	net.Refuse() // until net.Heal(t)
package testamqp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A Proxy stands between a client and the broker and makes the faults of a
// network.
type Proxy struct {
	broker  string // host:port
	Addr    string // its own
	wg      sync.WaitGroup
	Said    atomic.Int64 // how often the clients said something
	HungUp  atomic.Int64 // how many links the broker ended
	linked  atomic.Int64 // how many there were
	silent  atomic.Bool  // accept, and say nothing
	forbids atomic.Bool  // turn the broker's 404 into a 403
	tls     *tls.Config  // nil: clients speak without TLS
	logins  atomic.Pointer[strings.Replacer]

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
}

// A link is one connection through the Proxy.
type link struct {
	client, broker net.Conn // broker is nil on a silent link

	mu   sync.Mutex // while something is written to the client
	held sync.Mutex // while the broker is kept from speaking
	deaf sync.Mutex // while the broker is kept from hearing
}

// NewProxy returns a Proxy to the broker of an AMQP URL, and the URL through it.
func NewProxy(t testing.TB, brokerURL string) (*Proxy, string) {
	t.Helper()
	return newProxy(t, brokerURL, nil)
}

func newProxy(t testing.TB, brokerURL string, clients *tls.Config) (*Proxy, string) {
	t.Helper()
	u, err := url.Parse(brokerURL)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	p := &Proxy{broker: u.Host, Addr: "127.0.0.1:0", tls: clients, links: map[*link]struct{}{}}
	p.Heal(t)
	t.Cleanup(func() {
		p.Refuse()
		p.wg.Wait()
	})
	u.Host = p.Addr
	return p, u.String()
}

// NewAlias returns a Proxy, and the URL through it, by which a client takes itself for
// another user than the broker does.
func NewAlias(t testing.TB, brokerURL string) (*Proxy, string) {
	t.Helper()
	p, through := newProxy(t, brokerURL, nil)
	u, err := url.Parse(through)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	user, alias := u.User.Username(), strings.Repeat("x", len(u.User.Username()))
	p.logins.Store(strings.NewReplacer("\x00"+alias+"\x00", "\x00"+user+"\x00")) // of PLAIN
	password, _ := u.User.Password()
	u.User = url.UserPassword(alias, password)
	return p, u.String()
}

// Heal makes the network sound again.
func (p *Proxy) Heal(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent.Store(false)
	if p.listener != nil {
		return
	}
	listener, err := net.Listen("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if p.tls != nil {
		listener = tls.NewListener(listener, p.tls)
	}
	p.listener, p.Addr = listener, listener.Addr().String()
	p.wg.Go(func() { p.accept(listener) })
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		p.linked.Add(1)
		p.mu.Lock()
		l := &link{client: client}
		p.links[l] = struct{}{}
		p.mu.Unlock()
		if !p.silent.Load() {
			p.join(l)
		}
	}
}

func (p *Proxy) join(l *link) {
	broker, err := net.Dial("tcp", p.broker)
	if err != nil {
		l.client.Close()
		return
	}
	p.mu.Lock()
	l.broker = broker
	p.mu.Unlock()
	p.wg.Go(func() {
		_, _ = io.Copy(writer(func(b []byte) (int, error) { return p.hear(l, b) }), l.client)
		p.drop(l)
	})
	p.wg.Go(func() {
		if _, err := io.Copy(writer(func(b []byte) (int, error) { return p.say(l, b) }), broker); !errors.Is(err, net.ErrClosed) {
			p.HungUp.Add(1)
		}
		p.drop(l)
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// hear passes on what the client says.
func (p *Proxy) hear(l *link, b []byte) (int, error) {
	p.Said.Add(1)
	l.deaf.Lock()
	defer l.deaf.Unlock()
	if logins := p.logins.Load(); logins != nil {
		b = []byte(logins.Replace(string(b)))
	}
	return l.broker.Write(b)
}

// say passes on what the broker says.
func (p *Proxy) say(l *link, b []byte) (int, error) {
	const closeChannel = "\x00\x14\x00\x28" // class and method, before the code
	if p.forbids.Load() {
		b = bytes.ReplaceAll(b, []byte(closeChannel+"\x01\x94"), []byte(closeChannel+"\x01\x93"))
	}
	l.held.Lock()
	defer l.held.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client.Write(b)
}

// Forbid makes the broker answer ACCESS_REFUSED where it would answer NOT_FOUND.
func (p *Proxy) Forbid() { p.forbids.Store(true) }

func (p *Proxy) drop(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.client.Close()
	if l.broker != nil {
		l.broker.Close()
	}
	delete(p.links, l)
}

func (p *Proxy) all() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.links))
}

// Cut breaks all connections; new ones are welcome.
func (p *Proxy) Cut() {
	for _, l := range p.all() {
		p.drop(l)
	}
}

// Refuse breaks all connections and refuses new ones.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// BeSilent breaks all connections, accepts new ones and says nothing.
func (p *Proxy) BeSilent() {
	p.silent.Store(true)
	p.Cut()
}

// Hold keeps back what the broker says, until release is called.
func (p *Proxy) Hold() (release func()) {
	return lockAll(p.all(), func(l *link) *sync.Mutex { return &l.held })
}

// Deafen keeps back what the clients say, until release is called.
func (p *Proxy) Deafen() (release func()) {
	return lockAll(p.all(), func(l *link) *sync.Mutex { return &l.deaf })
}

func lockAll(links []*link, which func(*link) *sync.Mutex) (unlock func()) {
	for _, l := range links {
		which(l).Lock()
	}
	return func() {
		for _, l := range links {
			which(l).Unlock()
		}
	}
}

// Inject says something to the clients in the broker's name. Nothing else may
// be on its way.
func (p *Proxy) Inject(frame []byte) {
	for _, l := range p.all() {
		l.mu.Lock()
		_, _ = l.client.Write(frame)
		l.mu.Unlock()
	}
}

// Connections returns how many connections were accepted so far.
func (p *Proxy) Connections() int { return int(p.linked.Load()) }
