// Orders is an HTTP service in which an order is created once and paid once,
// whatever its clients repeat:
//
//	go -C examples run ./orders
//	curl -i 127.0.0.1:8080/orders -d '{"no": "A-1", "cents": 990}'
//	curl -i 127.0.0.1:8080/orders -d '{"no": "A-1", "cents": 990}'
//	curl -i -X POST 127.0.0.1:8080/orders/A-1/payment
//
// By itself it keeps its locks in memory and its orders in SQLite. After
// eval "$(scripts/stack env)" it uses those servers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/belaygo/belay/examples/internal/place"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *listen)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen string) (err error) {
	p, err := place.Open(ctx, "orders")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.DB.WithContext(ctx).AutoMigrate(&Order{}); err != nil {
		return fmt.Errorf("create table: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("orders: on http://%s (%s)\n", l.Addr(), p.Kind)
	return serve(ctx, l, &shop{db: p.DB, guard: p.Guard})
}

// serve answers requests until ctx ends, and those that run then.
func serve(ctx context.Context, l net.Listener, s *shop) error {
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(ctx)
}
