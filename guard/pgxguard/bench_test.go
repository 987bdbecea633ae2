package pgxguard_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/guard/pgxguard"
	"github.com/belaygo/belay/internal/teststack"
)

// BenchmarkInsert inserts a row by each front of one pool, with locks in memory, and by pgx and
// database/sql without a guard.
func BenchmarkInsert(b *testing.B) {
	ctx := b.Context()
	config, err := pgxpool.ParseConfig(teststack.Postgres(b))
	wantNil(b, err)
	pool, db := open(b, config)
	_, err = pool.Exec(ctx, schema+"; SET synchronous_commit = off")
	wantNil(b, err)
	side, err := db.DB()
	wantNil(b, err)
	g := guardtest.New(b, db).Guard
	n := 0
	for _, way := range []struct {
		name string
		sell func(no string) error
	}{
		{"pgx alone", func(no string) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return sells(no)(ctx, tx) })
		}},
		{"sql alone", func(no string) error {
			tx, err := side.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, insertOrder, no, 1); err != nil {
				return err
			}
			return tx.Commit()
		}},
		{"pgx", func(no string) error { return pgxguard.Do(ctx, g, no, sells(no), orderRow(no)) }},
		{"sql", func(no string) error {
			return g.DoSQL(ctx, no, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, insertOrder, no, 1)
				return err
			}, orderRow(no))
		}},
		{"gorm", func(no string) error {
			return g.Do(ctx, no, func(_ context.Context, tx *gorm.DB) error {
				return tx.Create(&order{No: no, Amount: 1}).Error
			}, guard.Protects(&order{No: no}))
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n++
				if err := way.sell(fmt.Sprint("b-", n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// order is a row of orders, as gorm has it.
type order struct {
	ID     int64
	No     string `gorm:"uniqueIndex"`
	Amount int
}
