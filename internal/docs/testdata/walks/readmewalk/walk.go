package readmewalk

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"

	"shop/crowd"
)

// COPY README.md: Belay: With GORM

// COPY README.md: Start: and open it

var at int64 // the item that is sold

// serve sells for fifty callers, of whom two each have one number.
func serve(ctx context.Context, g *guard.Guard) error {
	crowd.Repeat(func(caller int) error {
		return sell(ctx, g, fmt.Sprintf("%s-%d", os.Getenv("KEY"), caller/2), "ann", at)
	})
	return nil
}

// Walk is the rest of the program.
func Walk() {
	db, err := gorm.Open(mysql.Open(os.Getenv("DSN")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	i := Item{ID: rand.Int64N(1 << 50), Left: 50} // whose lock no other program has
	if err := errors.Join(db.AutoMigrate(&Sale{}, &Item{}), db.Create(&i).Error); err != nil {
		log.Fatal(err)
	}
	at = i.ID
	// Nobody listens: the events would wait in the database.
	if err := run(context.Background(), db, os.Getenv("REDIS_URL"), "http://127.0.0.1:9", "token-of-32-bytes-0123456789abcdef"); err != nil {
		log.Fatal(err)
	}
	if err := db.Take(&i).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d of 50 items are left\n", i.Left)
}
