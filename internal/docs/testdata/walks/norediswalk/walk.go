package norediswalk

import (
	"context"
	"database/sql"
	"log"
	"os"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock/sqllock"

	"shop/crowd"
)

type Order struct {
	ID uint
	No string `gorm:"type:varbinary(64);not null;uniqueIndex"`
}

// COPY Without Redis

// Walk is the rest of the program.
func Walk() {
	db, err := gorm.Open(mysql.Open(os.Getenv("DSN")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.AutoMigrate(&Order{}); err != nil {
		log.Fatal(err)
	}
	locks, err := sql.Open("mysql", os.Getenv("DSN"))
	if err != nil {
		log.Fatal(err)
	}
	locks.SetMaxOpenConns(4)
	err = runWithoutRedis(context.Background(), db, locks, func(ctx context.Context, b *belay.Belay) error {
		crowd.Repeat(func(int) error {
			return b.Guard.Apply(ctx, "order:7", guard.Insert(&Order{No: "7"}), guard.Wait(3*time.Second))
		})
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
