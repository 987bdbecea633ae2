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
	No string `gorm:"size:64;uniqueIndex"`
}

// COPY Without Redis

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
	locks, err := sql.Open("mysql", os.Getenv("DSN"))
	if err != nil {
		log.Fatal(err)
	}
	locks.SetMaxOpenConns(4)
	crowd.Repeat(func(caller int) error {
		return placeWithoutRedis(context.Background(), dbs[caller], locks, os.Getenv("KEY"))
	})
}
