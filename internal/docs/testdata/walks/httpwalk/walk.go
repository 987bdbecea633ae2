package httpwalk

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/once"
)

type Payment struct {
	ID    uint
	Cents int64
}

// COPY Idempotency-Key

// Walk is the rest of the program.
func Walk() {
	ctx := context.Background()
	db, err := gorm.Open(mysql.Open(os.Getenv("DSN")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.AutoMigrate(&Payment{}); err != nil {
		log.Fatal(err)
	}
	b, err := belay.Open(ctx, belay.Config{Service: "shop", DB: db, Redis: os.Getenv("REDIS_URL"), Once: &once.PurgerConfig{}})
	if err != nil {
		log.Fatal(err)
	}
	h, err := payments(b.Guard, func(*http.Request) (string, error) { return "ann", nil })
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("POST /payments", h)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	log.Fatal(http.Serve(l, nil))
}
