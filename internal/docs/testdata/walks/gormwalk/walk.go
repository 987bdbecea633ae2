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
	No string `gorm:"size:64;uniqueIndex"`
}

// COPY GORM

// Walk is the rest of the program.
func Walk() {
	var dbs []*gorm.DB // one for each caller, as in other processes
	for range 8 {
		db, err := gorm.Open(mysql.Open(os.Getenv("DSN")), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			log.Fatal(err)
		}
		dbs = append(dbs, db)
	}
	if err := dbs[0].AutoMigrate(&Order{}); err != nil {
		log.Fatal(err)
	}
	crowd.Repeat(func(caller int) error {
		return place(context.Background(), dbs[caller], os.Getenv("REDIS_URL"), os.Getenv("KEY"))
	})
}
