package redsyncwalk

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"

	"shop/crowd"
)

type Wallet struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

var ErrTooLittle = errors.New("too little in the wallet")

// withdraw is the transaction that the program has.
func withdraw(tx *gorm.DB, id, cents int64) error {
	var w Wallet
	if err := tx.Take(&w, id).Error; err != nil {
		return err
	}
	if w.Cents < cents {
		return ErrTooLittle
	}
	return tx.Model(&w).Update("cents", w.Cents-cents).Error
}

// COPY migrating.md: A mutex around a transaction

// COPY migrating.md: Without stopping the writers

// busy returns guard.ErrBusy if redsync has given up, and other errors as they are.
func busy(err error) error {
	_, taken := errors.AsType[*redsync.ErrTaken](err)
	if taken || errors.Is(err, redsync.ErrFailed) {
		return guard.ErrBusy
	}
	return err
}

// Walk is the rest of the program.
func Walk() {
	ctx := context.Background()
	db, err := gorm.Open(mysql.Open(os.Getenv("DSN")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	w := Wallet{ID: rand.Int64N(1 << 50), Cents: 1000} // whose locks no other program has
	if err := errors.Join(db.AutoMigrate(&Wallet{}), db.Create(&w).Error); err != nil {
		log.Fatal(err)
	}
	nodes := strings.Split(strings.TrimPrefix(os.Getenv("REDIS_URL"), "redis+cluster://"), ",")
	rs := redsync.New(goredis.NewPool(redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes})))
	b, err := belay.Open(ctx, belay.Config{Service: "shop", DB: db, Redis: os.Getenv("REDIS_URL")})
	if err != nil {
		log.Fatal(err)
	}
	crowd.Repeat(func(caller int) error {
		if caller%2 == 0 {
			return busy(before(ctx, rs, db, w.ID, 10))
		}
		return busy(during(ctx, rs, b.Guard, w.ID, 10))
	})
	crowd.Repeat(func(caller int) error {
		if caller%2 == 0 {
			return busy(during(ctx, rs, b.Guard, w.ID, 10))
		}
		return after(ctx, b.Guard, w.ID, 10)
	})
	if err := db.Take(&w).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d of 1000 cents are left\n", w.Cents)
}
