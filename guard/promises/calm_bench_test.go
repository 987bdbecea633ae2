package promises_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/redislock"
)

// BenchmarkCalm is an insert under a key that nobody contends for, and its parts: the lock, the
// transaction, both by hand, and Apply with and without Redis.
func BenchmarkCalm(b *testing.B) {
	dsn := teststack.MySQL(b)
	plain, db := testdb.OpenMySQL(b, dsn), testdb.OpenMySQL(b, dsn)
	for _, db := range []*gorm.DB{plain, db} {
		pool, err := db.DB()
		if err != nil {
			b.Fatal(err)
		}
		pool.SetMaxOpenConns(64)
		pool.SetMaxIdleConns(64)
	}
	if err := db.AutoMigrate(&Order{}); err != nil {
		b.Fatal(err)
	}
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: teststack.Redis(b)}, redislock.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close(bg) })
	inRedis, l := calmGuard(b, db, engine)
	inMemory, _ := calmGuard(b, db, memlock.New())

	var count atomic.Int64
	begun := strconv.FormatInt(time.Now().UnixNano(), 36)
	number := func() string { return begun + "-" + strconv.FormatInt(count.Add(1), 36) }
	insert := func(no string) error {
		return plain.Transaction(func(tx *gorm.DB) error { return tx.Create(&Order{No: no}).Error })
	}
	locked := func(no string, f func(no string) error) error {
		lease, err := l.Acquire(bg, no)
		if err != nil {
			return err
		}
		if err := f(no); err != nil {
			return err
		}
		return lease.Release(bg)
	}
	for _, way := range []struct {
		name string
		run  func(no string) error
	}{
		{"transaction", insert},
		{"lock", func(no string) error { return locked(no, func(string) error { return nil }) }},
		{"lock and transaction", func(no string) error { return locked(no, insert) }},
		{"Apply, lock in memory", func(no string) error { return inMemory.Apply(bg, no, guard.Insert(&Order{No: no})) }},
		{"Apply", func(no string) error { return inRedis.Apply(bg, no, guard.Insert(&Order{No: no})) }},
	} {
		b.Run("1 caller/"+way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := way.run(number()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("32 callers for each processor/"+way.name, func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := way.run(number()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func calmGuard(b *testing.B, db *gorm.DB, engine lockengine.Engine) (*guard.Guard, *lock.Locker) {
	b.Helper()
	l, err := lock.New(engine, lock.Config{})
	if err != nil {
		b.Fatal(err)
	}
	g, err := guard.New(db, l, guard.Config{Service: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = g.Close(bg)
		_ = l.Close(bg)
	})
	return g, l
}
