package gormsuite_test

import (
	"context"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
)

// mode is a way to run features.
type mode struct {
	prepare func(db *gorm.DB) error
	do      func(db *gorm.DB, run func(*gorm.DB) error) error
}

var (
	plain     = mode{prepare: nothing, do: directly}
	installed = mode{prepare: dbtx.Install, do: directly}
	begun     = mode{prepare: nothing, do: inTransaction}
	guarded   = mode{prepare: dbtx.Install, do: inGuarded}
)

func nothing(*gorm.DB) error { return nil }

func directly(db *gorm.DB, run func(*gorm.DB) error) error { return run(db) }

func inTransaction(db *gorm.DB, run func(*gorm.DB) error) error {
	tx := db.Begin()
	if tx.Error != nil {
		return tx.Error
	}
	if err := run(tx); err != nil {
		tx.Rollback()
		return err
	}
	return tx.Commit().Error
}

func inGuarded(db *gorm.DB, run func(*gorm.DB) error) error {
	tx, err := dbtx.Begin(context.Background(), db, dbtx.Options{Key: "gormsuite"})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := run(tx.DB()); err != nil {
		return err
	}
	return tx.Commit()
}
