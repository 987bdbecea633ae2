package watch

import (
	"net"

	"github.com/redis/go-redis/v9"
)

// target watches one Redis, round by round, in one goroutine; in a round each node
// has a goroutine of its own.
type target struct {
	Config                 // of the watcher
	publish func(*cluster) // makes the state visible
	cfg     Target
	state   *cluster
	clients map[string]*redis.Client
	pending []Entry // that Record has not taken yet
	roster  []string

	leaderless bool // in the last round
}

func newTarget(cfg Config, t Target, publish func(*cluster)) *target {
	return &target{
		Config: cfg, publish: publish, cfg: t,
		state:   newCluster(t.Name),
		clients: make(map[string]*redis.Client),
		roster:  t.Addrs,
	}
}

// retain closes the connections to nodes that are no longer queried.
func (t *target) retain(seen map[string]bool) {
	for addr := range t.clients {
		if !seen[addr] {
			t.drop(addr)
		}
	}
}

func (t *target) close() {
	for addr := range t.clients {
		t.drop(addr)
	}
}

// drop ends the connection to a node: the next round makes another. A client
// that has failed to dial would go on by itself, out of step with the rounds.
func (t *target) drop(addr string) {
	if c := t.clients[addr]; c != nil {
		_ = c.Close()
		delete(t.clients, addr)
	}
}

// client returns the client of a node, which connects at its first query.
func (t *target) client(addr string) *redis.Client {
	c := t.clients[addr]
	if c == nil {
		c = redis.NewClient(t.options(addr))
		t.clients[addr] = c
	}
	return c
}

func (t *target) options(addr string) *redis.Options {
	limit := t.timeout()
	return &redis.Options{
		Addr: addr, Username: t.cfg.Username, Password: t.cfg.Password, TLSConfig: t.cfg.TLS,
		Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, DialerRetries: 1, PoolSize: 2, ContextTimeoutEnabled: true,
		DialTimeout: limit, ReadTimeout: limit, WriteTimeout: limit, PoolTimeout: limit,
	}
}

// usable reports whether addr is a host and a port.
func usable(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && host != "" && port != "" && port != "0"
}
