package dbguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
)

// A version column refuses who read a row that has changed since, also outside
// of a guard.
func ExampleVersion() {
	db, done := exampleDB(&Stock{})
	defer done()
	db.Create(&Stock{ID: 7, Left: 2})

	var ann, bob Stock
	db.Take(&ann, 7)
	db.Take(&bob, 7)
	fmt.Println(db.Model(&ann).Update("left", ann.Left-1).Error)
	err := db.Model(&bob).Update("left", bob.Left-1).Error
	conflict, ok := errors.AsType[*dbguard.ConflictError](err)
	fmt.Println(ok, conflict.Table)
	// Output:
	// <nil>
	// true stocks
}

// Check says at start-up which tables can't be a second layer.
func ExampleCheck() {
	type Note struct {
		ID   uint
		Text string
	}
	db, done := exampleDB(&Stock{}, &Note{})
	defer done()

	ctx := context.Background()
	fmt.Println(dbguard.Check(ctx, db, &Stock{}))
	fmt.Println(dbguard.Check(ctx, db, &Note{}) != nil)
	// Output:
	// <nil>
	// true
}

// exampleDB opens an SQLite database with dbguard installed.
func exampleDB(models ...any) (db *gorm.DB, done func()) {
	dir, err := os.MkdirTemp("", "belay")
	if err != nil {
		log.Fatal(err)
	}
	pool, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "example.db"))
	if err != nil {
		log.Fatal(err)
	}
	db, err = gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(dbguard.Install(db), db.AutoMigrate(models...)); err != nil {
		log.Fatal(err)
	}
	return db, func() {
		_ = pool.Close()
		_ = os.RemoveAll(dir)
	}
}
