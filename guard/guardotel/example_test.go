package guardotel_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardotel"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// Each Do becomes a span with spans of its steps inside it. A program gives its
// own TracerProvider, or nil for the global one.
func Example() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	db, done := openDB()
	defer done()

	locker, err := lock.New(memlock.New(), lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(ctx)
	g, err := guard.New(db, locker, guard.Config{Service: "orders", Observer: guardotel.New(provider)})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close(ctx)

	if err := g.Apply(ctx, "order:7", guard.Insert(&Order{No: "7"})); err != nil {
		log.Fatal(err)
	}
	for _, span := range spans.GetSpans() { // as they ended
		fmt.Print(span.Name)
		for _, attribute := range span.Attributes {
			fmt.Printf(" %s=%s", attribute.Key, attribute.Value.String())
		}
		fmt.Println()
	}
	// Output:
	// belay.lock belay.key=order:7 belay.outcome=done
	// belay.transaction belay.key=order:7 belay.outcome=done
	// belay.do belay.key=order:7 belay.outcome=done
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
	if err := db.AutoMigrate(&Order{}); err != nil {
		log.Fatal(err)
	}
	return db, func() {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
		_ = os.RemoveAll(dir)
	}
}
