package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

// The code of docs/migrating.md and docs/redisson.md.

type Wallet struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// A service before: a transaction that reads, decides and writes.
func withdrawBefore(ctx context.Context, db *gorm.DB, id, cents int64) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var w Wallet
		if err := tx.Take(&w, id).Error; err != nil {
			return err
		}
		if w.Cents < cents {
			return ErrTooLittle
		}
		return tx.Model(&w).Update("cents", w.Cents-cents).Error
	})
}

// The same operation after: what was inside stays as it is.
func withdrawAfter(ctx context.Context, g *guard.Guard, id, cents int64) error {
	return g.Do(ctx, fmt.Sprintf("wallet:%d", id), func(ctx context.Context, tx *gorm.DB) error {
		var w Wallet
		if err := tx.Take(&w, id).Error; err != nil {
			return err
		}
		if w.Cents < cents {
			return ErrTooLittle
		}
		return tx.Model(&w).Update("cents", w.Cents-cents).Error
	}, guard.Protects(&Wallet{ID: id}))
}

// The same, said shorter.
func withdraw(ctx context.Context, g *guard.Guard, id, cents int64) error {
	return g.Apply(ctx, fmt.Sprintf("wallet:%d", id), guard.Update(&Wallet{ID: id}, func(w *Wallet) error {
		if w.Cents < cents {
			return ErrTooLittle
		}
		w.Cents -= cents
		return nil
	}))
}

// withdrawOnce is harmless when the request comes again, too.
func withdrawOnce(ctx context.Context, g *guard.Guard, user, request string, id, cents int64) error {
	r := once.Request{Operation: "withdraw", Scope: []string{user}, ID: request}
	err := g.Apply(ctx, fmt.Sprintf("wallet:%d", id), guard.Update(&Wallet{ID: id}, func(w *Wallet) error {
		if w.Cents < cents {
			return ErrTooLittle
		}
		w.Cents -= cents
		return nil
	}), guard.For(r))
	if errors.Is(err, guard.ErrDuplicate) {
		return nil // the first one has done it
	}
	return err
}

// The same service without GORM, before.
func withdrawSQLBefore(ctx context.Context, pool *sql.DB, id, cents int64) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var has int64
	if err := tx.QueryRowContext(ctx, "SELECT cents FROM wallets WHERE id = ?", id).Scan(&has); err != nil {
		return err
	}
	if has < cents {
		return ErrTooLittle
	}
	if _, err := tx.ExecContext(ctx, "UPDATE wallets SET cents = ? WHERE id = ?", has-cents, id); err != nil {
		return err
	}
	return tx.Commit()
}

// And after: DoSQL begins and commits.
func withdrawSQL(ctx context.Context, g *guard.Guard, id, cents int64) error {
	row := guard.Row("wallets", "id", id)
	return g.DoSQL(ctx, fmt.Sprintf("wallet:%d", id), func(ctx context.Context, tx *sql.Tx) error {
		var has, version int64
		if err := tx.QueryRowContext(ctx, "SELECT cents, version FROM wallets WHERE id = ?", id).Scan(&has, &version); err != nil {
			return err
		}
		if has < cents {
			return ErrTooLittle
		}
		return guard.UpdateRow(ctx, row, version, "cents = ?", has-cents)
	}, guard.Protects(row))
}

var ErrTooLittle = errors.New("too little in the wallet")

// report works under a lock only, as with other lock libraries: where nothing in
// a database is at stake.
func report(ctx context.Context, locker *lock.Locker, day string, build func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // for the lock and the work
	defer cancel()
	lease, err := locker.Acquire(ctx, "report:"+day)
	if err != nil {
		return err
	}
	err = build(lease.Context()) // which ends when the lock is lost
	return errors.Join(err, lease.Release(ctx))
}

func Example_migrating() {
	db, done := exampleDB(&Wallet{})
	defer done()
	if err := once.Migrate(context.Background(), db); err != nil {
		log.Fatal(err)
	}
	g, stop := exampleGuard(db)
	defer stop()
	ctx := context.Background()
	db.Create(&Wallet{ID: 1, Cents: 100})

	fmt.Println(withdrawBefore(ctx, db, 1, 10))
	fmt.Println(withdrawAfter(ctx, g, 1, 10))
	fmt.Println(withdraw(ctx, g, 1, 10))
	fmt.Println(withdrawOnce(ctx, g, "ann", "r-1", 1, 10))
	fmt.Println(withdrawOnce(ctx, g, "ann", "r-1", 1, 10)) // again
	fmt.Println(withdraw(ctx, g, 1, 1000))
	pool, err := db.DB()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(withdrawSQLBefore(ctx, pool, 1, 10))
	fmt.Println(withdrawSQL(ctx, g, 1, 10))
	var w Wallet
	db.Take(&w, 1)
	fmt.Println(w.Cents)
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// <nil>
	// <nil>
	// too little in the wallet
	// <nil>
	// <nil>
	// 40
}

func Example_lock() {
	locker, err := lock.New(memlock.New(), lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
	err = report(context.Background(), locker, "2026-11-21", func(context.Context) error {
		fmt.Println("built")
		return nil
	})
	fmt.Println(err)
	// Output:
	// built
	// <nil>
}
