package main_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// A service that stops is missed after the least time that counts, until it is back.
func TestSilentService(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	p := start(t, nil, "-amqp-url", broker, "-listen", "127.0.0.1:0", "-config", settings(t, "incidents: {silent_after: 10s}\n"))
	p.eventually("healthy", p.healthy)
	stop := startService(t, broker)
	p.eventually("the heartbeats are heard", func() bool { return !p.metric("belay_monitor_heartbeats_total 0") })
	const silent = `belay_monitor_incidents_open{cause="heartbeat_silent"} `
	if !p.metric(silent + "0") {
		t.Error("a service that was heard is silent")
	}
	stop()
	p.eventually("the service is missed", func() bool { return p.metric(silent + "1") })
	stop = startService(t, broker)
	p.eventually("the service is back", func() bool { return p.metric(silent + "0") })
	stop()
	p.stop(syscall.SIGTERM)
}

// startService starts the outbox of a service in which nothing happens.
func startService(t *testing.T, broker string) (stop func()) {
	t.Helper()
	pool, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "orders.db"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := outbox.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	publisher, err := rabbitmq.New(broker, rabbitmq.Config{})
	if err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(db, outbox.Config{
		Service: "orders", Relay: publisher, HeartbeatInterval: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		for _, end := range []func(context.Context) error{box.Close, publisher.Close} {
			if err := end(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
}
