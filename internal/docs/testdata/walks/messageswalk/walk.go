package messageswalk

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"

	"shop/crowd"
)

type Order struct {
	ID uint
	No string `gorm:"type:varbinary(64);not null;uniqueIndex"`
}

type Payment struct {
	ID    uint
	Cents int64
}

// COPY Messages

// Walk is the rest of the program.
func Walk() {
	ctx, key := context.Background(), os.Getenv("KEY")
	db, err := gorm.Open(mysql.Open(os.Getenv("DSN")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.AutoMigrate(&Order{}, &Payment{}); err != nil {
		log.Fatal(err)
	}
	mails := make(chan string, 50)
	b, err := openForMail(ctx, db, os.Getenv("REDIS_URL"), func(_ context.Context, m relay.Message) error {
		mails <- string(m.Body)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	crowd.Repeat(func(int) error { return placeAndMail(ctx, b.Guard, key) })
	if mailed := <-mails; mailed != key || len(mails) > 0 {
		log.Fatalf("mailed %q, and %d more", mailed, len(mails))
	}
	messages, err := inbox.New(b.Guard, inbox.Config{Consumer: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	crowd.Repeat(func(int) error {
		decision, err := take(ctx, messages, inbox.Message{ID: key})
		if err == nil && decision != inbox.Ack {
			log.Fatal(decision)
		}
		return err
	})
	var n int64
	if err := db.Model(&Payment{}).Count(&n).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Printf("1 mail, %d payment\n", n)
}
