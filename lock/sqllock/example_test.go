package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // SQLite without cgo

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/lock/sqllock"
)

type Order struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

// A service with one database and no Redis: the locks are in a table beside the orders, on
// a pool of their own.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "belay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dsn := "file:" + filepath.Join(dir, "shop.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	db, err := gorm.Open(sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: dsn}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	if pool, err := db.DB(); err == nil {
		defer pool.Close()
	}
	if err := db.AutoMigrate(&Order{}); err != nil {
		log.Fatal(err)
	}

	locks, err := sql.Open("sqlite", dsn)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	locks.SetMaxOpenConns(4)
	locks.SetMaxIdleConns(4)
	if err := sqllock.Migrate(ctx, locks, sqllock.SQLite); err != nil {
		log.Fatal(err)
	}
	engine, err := sqllock.New(locks, sqllock.SQLite, sqllock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(ctx)

	b, err := belay.Open(ctx, belay.Config{Service: "shop", DB: db, Engine: engine, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close(ctx)
	err = b.Guard.Do(ctx, "order:A1", func(_ context.Context, tx *gorm.DB) error {
		return tx.Create(&Order{No: "A1"}).Error
	})
	fmt.Println(err)
	// Output: <nil>
}
