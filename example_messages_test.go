package belay_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/relay"
)

// openWithRoutes opens a Belay that sends messages: about sales to a function, all others to a broker.
func openWithRoutes(ctx context.Context, db *gorm.DB, mail func(context.Context, relay.Message) error, broker relay.Publisher) (*belay.Belay, error) {
	return belay.Open(ctx, belay.Config{
		Service: "shop", DB: db, Engine: memlock.New(), // or Redis
		Messages: []relay.Route{
			{Topic: "sale.made", Handle: mail, Until: 20 * time.Hour}, // the mail's provider knows ids for a day
			{Topic: relay.Others, To: broker},
		},
	})
}

// A message leaves with the commit of its operation, or never.
func ExampleConfig_messages() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "belay-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := gorm.Open(sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: "file:" + filepath.Join(dir, "shop.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"}),
		&gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	if pool, err := db.DB(); err == nil {
		defer pool.Close()
	}
	mailed := make(chan string)
	mail := func(_ context.Context, m relay.Message) error { // m.ID is the provider's idempotency key
		mailed <- string(m.Body)
		return nil
	}
	b, err := openWithRoutes(ctx, db, mail, noBroker{})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close(ctx)
	if err := b.Guard.Apply(ctx, "order:1", guard.Send(guard.Message{Topic: "sale.made", Body: []byte("order 1")})); err != nil {
		log.Fatal(err)
	}
	fmt.Println("mailed:", <-mailed)
	// Output: mailed: order 1
}

// noBroker stands for relay/amqprelay in an example without servers.
type noBroker struct{}

func (noBroker) Publish(context.Context, relay.Message) error { return relay.ErrUnavailable }
