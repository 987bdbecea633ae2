package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/examples/twoservices"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/relay/amqprelay"
)

// Variables of a service in a process of its own.
const (
	childRole  = "BELAY_TEST_E2E_ROLE"
	childDSN   = "BELAY_TEST_E2E_DSN"
	childRedis = "BELAY_TEST_E2E_REDIS"
	childAMQP  = "BELAY_TEST_E2E_AMQP"
)

// The roles, of which three are wrong on purpose.
const (
	roleShop      = "shop"
	roleWarehouse = "warehouse"
	roleOutside   = "shop that sends outside of the transaction"
	roleNoInbox   = "warehouse without an inbox"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := serve(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

// leaseOfLocks is short: a process that is paused loses its locks.
const leaseOfLocks = 3 * time.Second

// serve runs a service until SIGTERM.
func serve(role string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	d := mysql.Open(os.Getenv(childDSN))
	if role == roleWarehouse || role == roleNoInbox {
		d = postgres.Open(os.Getenv(childDSN))
	}
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	if pool, err := db.DB(); err == nil {
		defer pool.Close()
		pool.SetMaxOpenConns(16)
	}
	cfg := belay.Config{DB: db, Redis: "redis+cluster://" + os.Getenv(childRedis), Lock: lock.Config{TTL: leaseOfLocks}}
	switch role {
	case roleWarehouse, roleNoInbox:
		return serveWarehouse(ctx, cfg, role)
	}
	return serveShop(ctx, cfg, role)
}

// closing bounds the end of a service.
const closing = 10 * time.Second

func serveShop(ctx context.Context, cfg belay.Config, role string) (err error) {
	broker, err := amqprelay.New(os.Getenv(childAMQP), amqprelay.Config{})
	if err != nil {
		return err
	}
	b, err := twoservices.OpenShop(ctx, cfg, broker)
	if err != nil {
		return err
	}
	sell := twoservices.Sell
	if role == roleOutside {
		sell = sellOutside
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		item, _ := strconv.ParseInt(r.FormValue("item"), 10, 64)
		if err := sell(r.Context(), b.Guard, r.FormValue("no"), item); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})}
	fmt.Fprintln(os.Stdout, "serves", listener.Addr())
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return errors.Join(b.Close(ctx), broker.Close(ctx))
}

func serveWarehouse(ctx context.Context, cfg belay.Config, role string) error {
	b, err := twoservices.OpenWarehouse(ctx, cfg)
	if err != nil {
		return err
	}
	serve := twoservices.Serve
	if role == roleNoInbox {
		serve = serveWithoutInbox
	}
	fmt.Fprintln(os.Stdout, "serves")
	for backoff := (wait.Backoff{Min: 100 * time.Millisecond, Max: time.Second}); ctx.Err() == nil; {
		if err := serve(ctx, b.Guard, os.Getenv(childAMQP)); err != nil {
			fmt.Fprintln(os.Stderr, "serve:", err)
			_ = wait.Sleep(ctx, backoff.Next(), nil)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return b.Close(ctx)
}

// decode returns the sale of a message.
func decode(body []byte) (s twoservices.Sale, err error) {
	err = json.Unmarshal(body, &s)
	return s, err
}
