package twoservices

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/relay"
	"github.com/belaygo/belay/relay/amqprelay"
)

// TestTwoServices: each sale is requested twice, and shipped once, in the order of its item. It needs
// no servers, and uses those that the environment names if ON_SERVERS is set.
func TestTwoServices(t *testing.T) {
	shopDB, warehouseDB := openDB(t, "shop.db"), openDB(t, "warehouse.db")
	url := os.Getenv("BELAY_AMQP_URL")
	if os.Getenv("ON_SERVERS") == "" {
		url = ""
	} else {
		shopDB = open(t, mysql.Open(os.Getenv("BELAY_MYSQL_DSN")))
		warehouseDB = open(t, postgres.Open(os.Getenv("BELAY_POSTGRES_DSN")))
	}
	const items, sales = 3, 20
	if err := errors.Join(shopDB.AutoMigrate(&Item{}, &Sale{}), warehouseDB.AutoMigrate(&Shelf{}, &Shipment{})); err != nil {
		t.Fatal(err)
	}
	for id := range int64(items) {
		if err := errors.Join(shopDB.Create(&Item{ID: id + 1}).Error, warehouseDB.Create(&Shelf{ID: id + 1}).Error); err != nil {
			t.Fatal(err)
		}
	}
	locks := memlock.New() // each service has its own keys
	warehouse, err := OpenWarehouse(t.Context(), belay.Config{DB: warehouseDB, Engine: locks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = warehouse.Close(context.Background()) })
	shop, err := OpenShop(t.Context(), belay.Config{DB: shopDB, Engine: locks}, broker(t, url, warehouse.Guard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Close(context.Background()) })

	var crowd sync.WaitGroup
	for n := range 2 * sales {
		crowd.Go(func() {
			err := guard.ErrBusy
			for errors.Is(err, guard.ErrBusy) { // a customer tries again
				err = Sell(t.Context(), shop.Guard, fmt.Sprintf("A-%d", n/2), int64(1+n/2%items))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	var shipped []Shipment
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); len(shipped) < sales && time.Now().Before(deadline); <-tick.C {
		if err := warehouseDB.Order("id").Find(&shipped).Error; err != nil {
			t.Fatal(err)
		}
	}
	if len(shipped) != sales {
		t.Errorf("%d shipments, want %d", len(shipped), sales)
	}
	for _, s := range shipped {
		if s.Place != s.Sale {
			t.Errorf("sale %d of item %d is shipment %d", s.Sale, s.Item, s.Place)
		}
	}
}

func openDB(t *testing.T, name string) *gorm.DB {
	t.Helper()
	file := filepath.Join(t.TempDir(), name) + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	return open(t, sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: file}))
}

func open(t *testing.T, d gorm.Dialector) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
	})
	return db
}

// broker returns the way to the broker at url, from which the warehouse reads. Without a url it
// stands for one.
func broker(t *testing.T, url string, g *guard.Guard) relay.Publisher {
	t.Helper()
	if url == "" {
		box, err := inbox.New(g, inbox.Config{Consumer: "warehouse"})
		if err != nil {
			t.Fatal(err)
		}
		return &direct{box: box}
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		err = Declare(ch)
	}
	if err != nil {
		t.Fatal(err)
	}
	to, err := amqprelay.New(url, amqprelay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close(context.Background()) })
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	for range 2 {
		serving.Go(func() {
			if err := Serve(ctx, g, url); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { stop(); serving.Wait() })
	return to
}

// direct gives each message to the warehouse twice.
type direct struct{ box *inbox.Inbox }

func (d *direct) Publish(ctx context.Context, m relay.Message) error {
	for range 2 {
		op := func(ctx context.Context, tx *gorm.DB) error { return ship(ctx, tx, m.Body) }
		if decision, err := d.box.Handle(ctx, inbox.Message{ID: m.ID, Body: m.Body}, op, shelfOf(m.Body)...); decision != inbox.Ack {
			return err
		}
	}
	return nil
}
