// Orders is an HTTP service in which an order is created once and paid once,
// whatever its clients repeat:
//
//	go -C examples run ./orders
//	curl -i 127.0.0.1:8080/orders -H 'Idempotency-Key: k1' -d '{"cents": 990}'
//	curl -i 127.0.0.1:8080/orders -H 'Idempotency-Key: k1' -d '{"cents": 990}'
//	curl -i 127.0.0.1:8080/orders/1/payment -H 'Idempotency-Key: k2' -X POST
//
// By default it keeps its locks in memory and its orders in SQLite. After eval
// "$(scripts/stack env)" it uses those servers.
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
	"path/filepath"
	"syscall"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // SQLite without cgo

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
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
	db, g, done, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := db.WithContext(ctx).AutoMigrate(&Order{}); err != nil {
		return fmt.Errorf("create table: %w", err)
	}
	handler, err := (&shop{db: db, guard: g}).handler()
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("orders: on http://%s (%s)\n", l.Addr(), db.Name())
	return serve(ctx, l, handler)
}

// open makes the guard: on the servers that scripts/stack env names, or on locks in
// memory and an SQLite file that goes away with the program.
func open(ctx context.Context) (db *gorm.DB, g *guard.Guard, done func() error, err error) {
	cfg := belay.Config{
		Service: "orders", Engine: memlock.New(), AMQP: os.Getenv("BELAY_AMQP_URL"),
		Once: &once.PurgerConfig{}, // keeps requests for 72 hours, answers for 24
	}
	if addrs := os.Getenv("BELAY_REDIS_ADDRS"); addrs != "" {
		cfg.Engine, cfg.Redis = nil, "redis+cluster://"+addrs
	}
	dir, err := os.MkdirTemp("", "belay-orders-")
	if err != nil {
		return nil, nil, nil, err
	}
	file := filepath.Join(dir, "orders.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	dialect := sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: file})
	if dsn := os.Getenv("BELAY_MYSQL_DSN"); dsn != "" {
		dialect = mysql.Open(dsn)
	}
	cfg.DB, err = gorm.Open(dialect, &gorm.Config{Logger: logger.Discard}) // errors are returned
	if err != nil {
		return nil, nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	b, err := belay.Open(ctx, cfg)
	if err != nil {
		return nil, nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return cfg.DB, b.Guard, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return errors.Join(b.Close(ctx), os.RemoveAll(dir))
	}, nil
}

// serve answers requests until ctx ends, and finishes the running ones.
func serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
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
