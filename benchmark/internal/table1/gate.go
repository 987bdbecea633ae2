package table1

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// gate lets JMeter wait for the death of the master: GET /killed answers when it
// has happened.
type gate struct {
	server *http.Server

	mu     sync.Mutex
	killed <-chan struct{} // of the round that runs
}

func (g *gate) set(killed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.killed = killed
}

func (g *gate) serve(ctx context.Context, addr *string) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for jmeter: %w", err)
	}
	*addr = ln.Addr().String()
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = g.server.Serve(ln) }()
	return nil
}

func (g *gate) close() error { return g.server.Close() }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	killed := g.killed
	g.mu.Unlock()
	select {
	case <-killed: // for ever while there is no accident: nobody asks then
	case <-r.Context().Done():
		w.WriteHeader(http.StatusGatewayTimeout)
	}
}
