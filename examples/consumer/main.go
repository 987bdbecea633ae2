// Consumer reads messages that come more than once, as every queue delivers them
// now and then, and books each of them once:
//
//	go -C examples run ./consumer
//
// By default it keeps its locks in memory and its accounts in SQLite. After eval
// "$(scripts/stack env)" it uses those servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // SQLite without cgo

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

const (
	accounts = 5
	payments = 200
	workers  = 8
)

func run(ctx context.Context, out io.Writer) (err error) {
	db, g, done, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	db = db.WithContext(ctx)
	if err := db.AutoMigrate(&Account{}); err != nil {
		return fmt.Errorf("create table: %w", err)
	}
	opened := make([]Account, accounts)
	if err := db.Create(&opened).Error; err != nil {
		return fmt.Errorf("open accounts: %w", err)
	}

	box, err := inbox.New(g, inbox.Config{Consumer: "booking"})
	if err != nil {
		return err
	}
	q := newQueue(opened)
	if err := q.serve(ctx, &handler{box}); err != nil {
		return err
	}

	var cents int64
	for i := range opened {
		if err := db.Take(&opened[i], opened[i].ID).Error; err != nil {
			return err
		}
		cents += opened[i].Cents
	}
	fmt.Fprintf(out, "%d payments of 100 cents delivered %d times: %d cents booked\n", payments, q.delivered.Load(), cents)
	if cents != payments*100 {
		return fmt.Errorf("%d cents were booked, want %d", cents, payments*100)
	}
	return nil
}

// open makes the guard: on the servers that scripts/stack env names, or on locks in
// memory and an SQLite file that goes away with the program.
func open(ctx context.Context) (db *gorm.DB, g *guard.Guard, done func() error, err error) {
	cfg := belay.Config{Service: "consumer", Engine: memlock.New(), AMQP: os.Getenv("BELAY_AMQP_URL"), Once: new(once.PurgerConfig)}
	if addrs := os.Getenv("BELAY_REDIS_ADDRS"); addrs != "" {
		cfg.Engine, cfg.Redis = nil, "redis+cluster://"+addrs
	}
	dir, err := os.MkdirTemp("", "belay-consumer-")
	if err != nil {
		return nil, nil, nil, err
	}
	file := filepath.Join(dir, "consumer.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	dialect := sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: file})
	if dsn := os.Getenv("BELAY_MYSQL_DSN"); dsn != "" {
		dialect = mysql.Open(dsn)
	}
	cfg.DB, err = gorm.Open(dialect, &gorm.Config{Logger: logger.Discard}) // errors are returned
	if err != nil {
		return nil, nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	b, err := belay.Open(ctx, cfg)
	if err != nil {
		return nil, nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return cfg.DB, b.Guard, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return errors.Join(b.Close(ctx), os.RemoveAll(dir))
	}, nil
}
