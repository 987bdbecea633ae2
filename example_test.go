package belay_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // SQLite without cgo

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

// run serves with locks in Redis, and reports lock failures to guard-monitor.
func run(ctx context.Context, db *gorm.DB, redisURL, monitorURL, token string) (err error) {
	b, err := belay.Open(ctx, belay.Config{
		Service: "shop", DB: db, Redis: redisURL,
		Monitor: monitorURL, MonitorToken: token,
		Once: &once.PurgerConfig{}, // the tables for an Idempotency-Key
	})
	if err != nil {
		return err
	}
	defer func() { // when ctx ends, operations in progress get 10 s
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, b.Close(ctx))
	}()
	return serve(ctx, b.Guard)
}

type Order struct {
	ID uint
	No string `gorm:"size:64;not null;uniqueIndex"`
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "belay")
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
	if err := db.AutoMigrate(&Order{}); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	b, err := belay.Open(ctx, belay.Config{Service: "shop", DB: db, Engine: memlock.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close(ctx)
	fmt.Println(b.Guard.Apply(ctx, "order:7", guard.Insert(&Order{No: "7"})))
	err = b.Guard.Apply(ctx, "order:7", guard.Insert(&Order{No: "7"}))
	fmt.Println(errors.Is(err, guard.ErrDuplicate))
	// Output:
	// <nil>
	// true
}

// serve stands for the program.
func serve(ctx context.Context, g *guard.Guard) error {
	return g.Apply(ctx, "order:7", guard.Insert(&Order{No: "7"}))
}
