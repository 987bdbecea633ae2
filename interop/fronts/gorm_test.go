package fronts_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// openGorm returns GORM's handle of a pool, by a driver of GORM's.
func openGorm(t testing.TB, d database, pool *sql.DB) *gorm.DB {
	t.Helper()
	of := sqlite.New(sqlite.Config{Conn: pool})
	switch d.dialect {
	case "mysql":
		of = mysql.New(mysql.Config{Conn: pool})
	case "postgres":
		of = postgres.New(postgres.Config{Conn: pool})
	}
	db, err := gorm.Open(of, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// gormShop is GORM, with models.
type gormShop struct{}

type gormSale struct {
	No    string `gorm:"primaryKey"`
	Buyer string
}

func (gormSale) TableName() string { return "sales" }

type gormItem struct {
	ID      int64
	Stock   int64
	Version dbguard.Version
}

func (gormItem) TableName() string { return "items" }

// gormTx is the key of GORM's transaction in the context of an operation.
type gormTx struct{}

func (gormShop) operate(ctx context.Context, g *guard.Guard, key string, op func(context.Context) error, opts ...guard.Option) error {
	return g.Do(ctx, key, func(ctx context.Context, tx *gorm.DB) error {
		return op(context.WithValue(ctx, gormTx{}, tx))
	}, opts...)
}

func (gormShop) tx(ctx context.Context) *gorm.DB { return ctx.Value(gormTx{}).(*gorm.DB) }

func (s gormShop) sell(ctx context.Context, no string) error {
	return s.tx(ctx).Create(&gormSale{no, "ann"}).Error
}

func (s gormShop) take(ctx context.Context, version int64) (int64, error) {
	res := s.tx(ctx).Model(&gormItem{ID: 7, Version: dbguard.Version(version)}).Update("stock", gorm.Expr("stock - 1"))
	return res.RowsAffected, res.Error
}

func (s gormShop) undo(ctx context.Context, no string) error {
	err := s.tx(ctx).Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Create(&gormSale{no, "ann"}).Error, errUndo)
	})
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}
