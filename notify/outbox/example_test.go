package outbox_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// An event is in the table before Publish returns, and the relay takes it from
// there to where it is to go: here to standard output.
func Example() {
	ctx := context.Background()
	db, done := openDB()
	defer done()
	if err := outbox.Migrate(ctx, db); err != nil {
		log.Fatal(err)
	}
	printer := notify.PublisherFunc(func(_ context.Context, ev notify.Event) error {
		fmt.Println(ev.Verdict, ev.Key)
		return nil
	})
	events, err := outbox.New(db, outbox.Config{Relay: printer})
	if err != nil {
		log.Fatal(err)
	}

	// A guard.Guard does this: see guard.Config.Publisher.
	err = events.Publish(ctx, notify.Event{
		ID: "0199e0a2-7c51-7c3a-9d0e-3f1b5a6c7d8e", Service: "orders", Key: "order:7",
		Verdict: notify.VerdictLost, Outcome: notify.OutcomeRolledBack, CaughtAt: time.Now(), Count: 1,
	})
	fmt.Println("stored:", err == nil)
	fmt.Println("forwarded:", events.Close(ctx) == nil) // it waits until nothing is left
	// Unordered output:
	// stored: true
	// lost order:7
	// forwarded: true
}

// On to RabbitMQ. At the end of the program the outbox is closed before the
// publisher.
func ExampleNew_rabbitMQ() {
	run := func(ctx context.Context, db *gorm.DB, amqpURL string) error {
		broker, err := rabbitmq.New(amqpURL, rabbitmq.Config{Name: "orders"})
		if err != nil {
			return err
		}
		defer broker.Close(ctx)

		if err := outbox.Migrate(ctx, db); err != nil {
			return err
		}
		events, err := outbox.New(db, outbox.Config{Service: "orders", Relay: broker, Logger: slog.Default()})
		if err != nil {
			return err
		}
		defer events.Close(ctx)

		return nil // give events to guard.Config.Publisher, and serve
	}
	_ = run
}

// openDB opens an empty SQLite database.
func openDB() (db *gorm.DB, done func()) {
	dir, err := os.MkdirTemp("", "belay")
	if err != nil {
		log.Fatal(err)
	}
	db, err = gorm.Open(sqlite.Dialector{DriverName: "sqlite", DSN: "file:" + filepath.Join(dir, "orders.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"}, &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return db, func() {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
		_ = os.RemoveAll(dir)
	}
}
