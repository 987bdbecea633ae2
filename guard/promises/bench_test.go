package promises_test

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// BenchmarkDo is a Do around nothing: what the guard itself costs, beside a bare
// transaction.
func BenchmarkDo(b *testing.B) {
	db := testdb.OpenSQLite(b, filepath.Join(b.TempDir(), "bench.db"))
	locker, err := lock.New(memlock.New(), lock.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = locker.Close(bg) })
	g, err := guard.New(db, locker, guard.Config{Service: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("guarded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := g.Do(bg, "k", func(context.Context, *gorm.DB) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("insert", func(b *testing.B) {
		if err := db.AutoMigrate(&Order{}); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := g.Apply(bg, "k", guard.Insert(&Order{No: strconv.Itoa(i)})); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		if err := db.AutoMigrate(&Stock{}); err != nil {
			b.Fatal(err)
		}
		stock := Stock{}
		if err := db.Create(&stock).Error; err != nil {
			b.Fatal(err)
		}
		sell := func(s *Stock) error { s.Left--; return nil }
		b.ReportAllocs()
		for b.Loop() {
			if err := g.Apply(bg, "k", guard.Update(&Stock{ID: stock.ID}, sell)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := db.Transaction(func(*gorm.DB) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("lock", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lease, err := locker.TryAcquire(bg, "k")
			if err != nil {
				b.Fatal(err)
			}
			_ = lease.Release(bg)
		}
	})
}
