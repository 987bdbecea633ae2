package pgxguard_test

import (
	"database/sql/driver"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// BenchmarkPrelude inserts a row for a request, with locks in memory: what comes before the operation in
// one round trip, and statement by statement. A transaction of GORM without a guard is beside them.
func BenchmarkPrelude(b *testing.B) {
	ctx := b.Context()
	config, err := pgxpool.ParseConfig(teststack.Postgres(b))
	wantNil(b, err)
	config.MaxConns = 64
	pool, db := open(b, config)
	_, err = pool.Exec(ctx, schema)
	wantNil(b, err)
	wantNil(b, once.Migrate(ctx, db))
	g := guardtest.New(b, db)
	serve := func(no string) error {
		return g.Apply(ctx, no, guard.Insert(&order{No: no, Amount: 1}), guard.For(selling(no)))
	}
	of := pipeline.Register(nil)
	b.Cleanup(func() { pipeline.Register(of) })
	var n atomic.Int64
	for _, way := range []struct {
		name  string
		of    func(driver.Conn) pipeline.Pipeline
		serve func(no string) error
	}{
		{"gorm alone", of, func(no string) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Create(&order{No: no, Amount: 1}).Error })
		}},
		{"by statements", nil, serve},
		{"in one trip", of, serve},
	} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprint(way.name, "/", callers), func(b *testing.B) {
				pipeline.Register(way.of)
				b.ReportAllocs()
				b.SetParallelism((callers + 1) / 2)
				one := func() {
					if err := way.serve(fmt.Sprint("b-", n.Add(1))); err != nil {
						b.Error(err)
					}
				}
				if callers == 1 {
					for b.Loop() {
						one()
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one()
					}
				})
			})
		}
	}
}
