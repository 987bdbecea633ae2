package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

type Sale struct {
	ID    uint
	No    string `gorm:"type:varbinary(64);not null;uniqueIndex"` // refuses a second insert
	Item  int64
	Buyer string
}

type Item struct {
	ID      int64
	Left    int
	Version dbguard.Version // refuses a second update
}

var ErrSoldOut = errors.New("sold out")

// sell sells one item. The unique No makes a repeated request harmless, the item's
// Version keeps the count right.
func sell(ctx context.Context, g *guard.Guard, no, buyer string, item int64) error {
	return g.Apply(ctx, fmt.Sprintf("item:%d", item), guard.All(
		guard.Insert(&Sale{No: no, Item: item, Buyer: buyer}),
		guard.Update(&Item{ID: item}, func(i *Item) error {
			if i.Left == 0 {
				return ErrSoldOut
			}
			i.Left--
			return nil
		}),
	), guard.Wait(3*time.Second)) // a second call for the item waits for the first
}

type Account struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

var ErrInsufficientFunds = errors.New("insufficient funds")

// transfer moves money under the locks on both accounts.
func transfer(ctx context.Context, g *guard.Guard, from, to, cents int64) error {
	key := func(account int64) string { return fmt.Sprintf("account:%d", account) }
	return g.Apply(ctx, key(from), guard.All(
		guard.Update(&Account{ID: from}, func(a *Account) error {
			if a.Cents < cents {
				return ErrInsufficientFunds
			}
			a.Cents -= cents
			return nil
		}),
		guard.Update(&Account{ID: to}, func(a *Account) error {
			a.Cents += cents
			return nil
		}),
	), guard.Also(key(to), &Account{ID: to}))
}

// Receipt is the answer to a payment.
type Receipt struct{ Left int64 }

// pay pays from an account. A client that sends its request again, for want of an answer,
// gets the receipt of the first time.
func pay(ctx context.Context, g *guard.Guard, user, idempotencyKey string, account, cents int64) (guard.Answer[Receipt], error) {
	r := once.Request{Operation: "pay", Scope: []string{user}, ID: idempotencyKey}
	a := &Account{ID: account}
	return guard.Once(ctx, g, r, func(ctx context.Context, tx *gorm.DB) (Receipt, error) {
		err := guard.Update(a, func(a *Account) error {
			if a.Cents < cents {
				return ErrInsufficientFunds
			}
			a.Cents -= cents
			return nil
		}).Run(ctx, tx)
		return Receipt{Left: a.Cents}, err
	}, guard.Also(fmt.Sprintf("account:%d", account), &Account{ID: account}))
}

func ExampleOnce() {
	db, done := exampleDB(&Account{})
	defer done()
	if err := once.Migrate(context.Background(), db); err != nil {
		log.Fatal(err)
	}
	db.Create(&Account{ID: 1, Cents: 500})
	g, stop := exampleGuard(db)
	defer stop()

	for range 2 {
		receipt, err := pay(context.Background(), g, "ann", "8e03978e", 1, 300)
		fmt.Println(receipt.Value.Left, receipt.Replayed, err)
	}
	_, err := pay(context.Background(), g, "ann", "b3a1f0c2", 1, 300)
	fmt.Println(err)
	// Output:
	// 200 false <nil>
	// 200 true <nil>
	// insufficient funds
}

func ExampleAlso() {
	db, done := exampleDB(&Account{})
	defer done()
	db.Create([]Account{{ID: 1, Cents: 500}, {ID: 2}})
	g, stop := exampleGuard(db)
	defer stop()

	fmt.Println(transfer(context.Background(), g, 1, 2, 300))
	fmt.Println(transfer(context.Background(), g, 1, 2, 300))
	var accounts []Account
	db.Order("id").Find(&accounts)
	fmt.Println(accounts[0].Cents, accounts[1].Cents)
	// Output:
	// <nil>
	// insufficient funds
	// 200 300
}

func ExampleGuard_Do() {
	db, done := exampleDB(&Sale{}, &Item{})
	defer done()
	db.Create(&Item{ID: 7, Left: 2})

	locker, err := lock.New(memlock.New(), lock.Config{}) // in production: redislock.Open
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
	g, err := guard.New(db, locker, guard.Config{Service: "shop"})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	fmt.Println("first:", sell(ctx, g, "no-1", "ann", 7))
	fmt.Println("again:", errors.Is(sell(ctx, g, "no-1", "ann", 7), guard.ErrDuplicate))
	fmt.Println("other:", sell(ctx, g, "no-2", "bob", 7))
	fmt.Println("late:", sell(ctx, g, "no-3", "eve", 7))
	// Output:
	// first: <nil>
	// again: true
	// other: <nil>
	// late: sold out
}

func ExampleInsert() {
	db, done := exampleDB(&Sale{})
	defer done()
	locker, err := lock.New(memlock.New(), lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
	g, err := guard.New(db, locker, guard.Config{Service: "shop"})
	if err != nil {
		log.Fatal(err)
	}

	err = g.Apply(context.Background(), "order:no-1", guard.Insert(&Sale{No: "no-1", Buyer: "ann"}))
	fmt.Println(err)
	err = g.Apply(context.Background(), "order:no-1", guard.Insert(&Sale{No: "no-1", Buyer: "ann"}))
	fmt.Println(err)
	// Output:
	// <nil>
	// guard: done before: dbguard: duplicate row in sales (no)
}

// A repeat finds the row that is there by the columns it knows.
func ExampleInsert_existing() {
	db, done := exampleDB(&Sale{})
	defer done()
	g, stop := exampleGuard(db)
	defer stop()
	ctx := context.Background()

	place := func(buyer string) (sale Sale, again bool, err error) {
		sale = Sale{No: "no-1", Buyer: buyer}
		err = g.Apply(ctx, "order:no-1", guard.Insert(&sale))
		if !errors.Is(err, guard.ErrDuplicate) {
			return sale, false, err
		}
		var existing Sale
		err = db.WithContext(ctx).Where(&Sale{No: "no-1"}).Take(&existing).Error
		return existing, true, err
	}
	for _, buyer := range []string{"ann", "bob"} {
		sale, again, err := place(buyer)
		fmt.Println(sale.No, sale.Buyer, again, err)
	}
	// Output:
	// no-1 ann false <nil>
	// no-1 ann true <nil>
}

// A request that is repeated often is refused without a visit to the database.
func ExampleRemember() {
	db, done := exampleDB(&Sale{})
	defer done()
	g, stop := exampleGuard(db)
	defer stop()

	for range 3 {
		err := g.Do(context.Background(), "order:no-1", func(ctx context.Context, tx *gorm.DB) error {
			fmt.Println("in the database")
			return guard.Insert(&Sale{No: "no-1"}).Run(ctx, tx)
		}, guard.Remember(time.Hour))
		fmt.Println(guard.ResultOf(err))
	}
	// Output:
	// in the database
	// done
	// duplicate
	// duplicate
}

// A Do inside an operation, with the same key, is a savepoint in its
// transaction.
func ExampleGuard_Do_nested() {
	db, done := exampleDB(&Sale{})
	defer done()
	g, stop := exampleGuard(db)
	defer stop()

	err := g.Do(context.Background(), "order:no-1", func(ctx context.Context, tx *gorm.DB) error {
		if err := guard.Insert(&Sale{No: "no-1"}).Run(ctx, tx); err != nil {
			return err
		}
		err := g.Do(ctx, "order:no-1", func(_ context.Context, tx *gorm.DB) error {
			tx.Create(&Sale{No: "no-2"})
			return ErrSoldOut // only this is undone
		})
		fmt.Println("inside:", err)
		return nil
	})
	var n int64
	db.Model(&Sale{}).Count(&n)
	fmt.Println("outside:", err, n)
	// Output:
	// inside: sold out
	// outside: <nil> 1
}

func ExampleUpdate() {
	db, done := exampleDB(&Item{})
	defer done()
	db.Create(&Item{ID: 7, Left: 2})
	locker, err := lock.New(memlock.New(), lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
	g, err := guard.New(db, locker, guard.Config{Service: "shop"})
	if err != nil {
		log.Fatal(err)
	}

	item := &Item{ID: 7}
	err = g.Apply(context.Background(), "item:7", guard.Update(item, func(i *Item) error {
		i.Left--
		return nil
	}))
	fmt.Println(err, item.Left, item.Version)
	// Output:
	// <nil> 1 2
}

// exampleGuard returns a guard with locks in memory.
func exampleGuard(db *gorm.DB) (g *guard.Guard, stop func()) {
	locker, err := lock.New(memlock.New(), lock.Config{}) // in production: redislock.Open
	if err != nil {
		log.Fatal(err)
	}
	g, err = guard.New(db, locker, guard.Config{Service: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	return g, func() {
		_ = g.Close(context.Background())
		_ = locker.Close(context.Background())
	}
}

// exampleDB opens an empty SQLite database.
func exampleDB(models ...any) (db *gorm.DB, done func()) {
	dir, err := os.MkdirTemp("", "belay")
	if err != nil {
		log.Fatal(err)
	}
	pool, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "example.db"))
	if err != nil {
		log.Fatal(err)
	}
	db, err = gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.AutoMigrate(models...); err != nil {
		log.Fatal(err)
	}
	return db, func() {
		_ = pool.Close()
		_ = os.RemoveAll(dir)
	}
}
