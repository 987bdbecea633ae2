package belay_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/lock/memlock"
)

// A service runs Doctor when it starts, and logs what it finds.
func ExampleBelay_Doctor() {
	type Refund struct {
		ID      uint
		OrderNo string `gorm:"size:64"` // without an index, two refunds of one order are two rows
	}
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
	if err := db.AutoMigrate(&Refund{}); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	b, err := belay.Open(ctx, belay.Config{Service: "shop", DB: db, Engine: memlock.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close(ctx)

	for _, finding := range b.Doctor(ctx, &Refund{}) {
		fmt.Println(finding.Severity, finding.Check, finding.Subject)
		fmt.Println(finding.Fix)
	}
	// Output:
	// error db-model model Refund, table refunds
	// add a unique index, or a field of type dbguard.Version
}
