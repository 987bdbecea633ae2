package gormwalk

import (
	"context"
	"log"
	"os"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"

	"shop/crowd"
)

type Order struct {
	ID uint
	No string `gorm:"type:varbinary(64);not null;uniqueIndex"`
}

// COPY GORM

// Walk is the rest of the program.
func Walk() {
	ctx := context.Background()
	var shops []*belay.Belay // as in other processes
	for range 8 {
		db, err := gorm.Open(mysql.Open(os.Getenv("DSN")), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			log.Fatal(err)
		}
		if err := db.AutoMigrate(&Order{}); err != nil {
			log.Fatal(err)
		}
		b, err := openShop(ctx, db, os.Getenv("REDIS_URL"))
		if err != nil {
			log.Fatal(err)
		}
		defer b.Close(ctx)
		shops = append(shops, b)
	}
	crowd.Repeat(func(caller int) error { return place(ctx, shops[caller%8], os.Getenv("KEY")) })
	for _, f := range shops[0].Doctor(ctx, &Order{}) {
		if f.Check == "db-model" || f.Check == "db-collation" {
			log.Fatal("the model of docs/start.md: ", f)
		}
	}
}
