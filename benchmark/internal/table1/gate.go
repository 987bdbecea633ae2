package table1

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// gate lets JMeter wait for the death of the master: GET /killed answers when it
// has happened.
type gate struct {
	server   *http.Server
	accident atomic.Pointer[accident] // of the round that runs; nil = there was none yet
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

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a := g.accident.Load(); a != nil {
		select {
		case <-a.killed:
		case <-r.Context().Done():
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	}
}
