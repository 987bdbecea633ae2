package shop

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/guard"
)

// sellPessimistic locks the row before it looks at it.
func sellPessimistic(ctx context.Context, db *gorm.DB, item int64) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var s PlainStock
		if err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Take(&s, item).Error; err != nil {
			return err
		}
		if err := take(&s.Remaining); err != nil {
			return err
		}
		return tx.Model(&s).Updates(map[string]any{"remaining": s.Remaining, "version": s.Version + 1}).Error
	})
}

// sellOptimistic updates the row if it is as it was read, and otherwise begins
// again: who is refused without need would have to ask again anyway.
func sellOptimistic(ctx context.Context, db *gorm.DB, item int64) error {
	for {
		err := sellOptimisticOnce(ctx, db, item)
		if !errors.Is(err, errConflict) {
			return err
		}
	}
}

func sellOptimisticOnce(ctx context.Context, db *gorm.DB, item int64) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var s PlainStock
		if err := tx.Take(&s, item).Error; err != nil {
			return err
		}
		if err := take(&s.Remaining); err != nil {
			return err
		}
		done := tx.Model(&s).Where("version = ?", s.Version).
			Updates(map[string]any{"remaining": s.Remaining, "version": s.Version + 1})
		if done.Error == nil && done.RowsAffected == 0 {
			return errConflict
		}
		return done.Error
	})
}

// sellGuarded is the operation of belay-stock.
func sellGuarded(item int64) guard.Op {
	return guard.Update(&Stock{ID: item}, func(s *Stock) error { return take(&s.Remaining) })
}
