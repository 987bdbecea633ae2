// Flashsale sells 20 items to 100 buyers who all come at once, and each of them twice.
// No buyer gets two, and only 20 are sold:
//
//	go -C examples run ./flashsale
//
// By default it keeps its locks in memory and its stock in SQLite. After eval
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
	"sync"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // SQLite without cgo

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock/memlock"
)

// Sale is one item in the hands of one buyer. The unique index on both makes the
// request of a buyer harmless when it comes again.
type Sale struct {
	ID    uint
	Item  int64  `gorm:"uniqueIndex:one_each"`
	Buyer string `gorm:"size:64;uniqueIndex:one_each"`
}

// Item is the item for sale. Its version keeps the count right.
type Item struct {
	ID      int64
	Left    int
	Version dbguard.Version
}

const (
	items  = 20
	buyers = 100
)

var errSoldOut = errors.New("sold out")

// buy sells one item to a buyer, in one transaction under the item's lock. It
// waits for its turn.
func buy(ctx context.Context, g *guard.Guard, item int64, buyer string) error {
	return g.Apply(ctx, fmt.Sprintf("item:%d", item), guard.All(
		guard.Insert(&Sale{Item: item, Buyer: buyer}),
		guard.Update(&Item{ID: item}, func(i *Item) error {
			if i.Left == 0 {
				return errSoldOut
			}
			i.Left--
			return nil
		}),
	), guard.Wait(30*time.Second))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flashsale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	db, g, done, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	db = db.WithContext(ctx)
	if err := db.AutoMigrate(&Sale{}, &Item{}); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	item := &Item{Left: items} // a new one each time
	if err := db.Create(item).Error; err != nil {
		return fmt.Errorf("stock up: %w", err)
	}
	answers := rush(ctx, g, item.ID)

	var sold int64
	if err := db.Model(&Sale{}).Where("item = ?", item.ID).Count(&sold).Error; err != nil {
		return err
	}
	if err := db.Take(item, item.ID).Error; err != nil {
		return err
	}
	fmt.Fprintf(out, "%d requests for %d items: %d sold, %d left\n", 2*buyers, items, sold, item.Left)
	for _, answer := range []string{"bought", "sold out", "has one already", "other"} {
		fmt.Fprintf(out, "%5d  %s\n", answers[answer], answer)
	}
	if sold != items || item.Left != 0 || answers["bought"] != items {
		return fmt.Errorf("%d items were bought, %d are in the books, %d are left", answers["bought"], sold, item.Left)
	}
	return nil
}

// open makes the guard: on the servers that scripts/stack env names, or on locks in
// memory and an SQLite file that goes away with the program.
func open(ctx context.Context) (db *gorm.DB, g *guard.Guard, done func() error, err error) {
	cfg := belay.Config{Service: "flashsale", Engine: memlock.New(), AMQP: os.Getenv("BELAY_AMQP_URL")}
	if addrs := os.Getenv("BELAY_REDIS_ADDRS"); addrs != "" {
		cfg.Engine, cfg.Redis = nil, "redis+cluster://"+addrs
	}
	dir, err := os.MkdirTemp("", "belay-flashsale-")
	if err != nil {
		return nil, nil, nil, err
	}
	file := filepath.Join(dir, "flashsale.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
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

// rush sends two requests for every buyer, all at once, and counts the answers.
func rush(ctx context.Context, g *guard.Guard, item int64) map[string]int {
	var mu sync.Mutex
	answers := make(map[string]int)
	var wg sync.WaitGroup
	for n := range 2 * buyers {
		wg.Go(func() {
			err := buy(ctx, g, item, fmt.Sprintf("buyer-%d", n/2))
			mu.Lock()
			defer mu.Unlock()
			answers[word(err)]++
		})
	}
	wg.Wait()
	return answers
}

func word(err error) string {
	switch {
	case err == nil:
		return "bought"
	case errors.Is(err, errSoldOut):
		return "sold out"
	case errors.Is(err, guard.ErrDuplicate):
		return "has one already"
	}
	return "other"
}
