package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // SQLite without cgo

	"github.com/belaygo/belay/notify/outbox"
)

// openSQLite opens the database in the file path with a pool of one connection,
// which it leaves in pool for the caller to close.
func openSQLite(path string, pool **sql.DB) (*gorm.DB, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"}
	conns, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	conns.SetMaxOpenConns(1)
	*pool = conns
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: conns}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return db, nil
}

// stockUp creates the tables and puts the items on the shelf.
func stockUp(ctx context.Context, db *gorm.DB, items int) error {
	if err := db.WithContext(ctx).AutoMigrate(&Order{}, &Stock{}); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if err := outbox.Migrate(ctx, db); err != nil {
		return err
	}
	return db.WithContext(ctx).Create(&Stock{ID: itemID, Left: items}).Error
}
