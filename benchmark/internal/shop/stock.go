package shop

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// sellPessimistic sells one of an item. It locks the row before it looks at it, and
// inserts the order unless it is nil.
func sellPessimistic(ctx context.Context, db *gorm.DB, item int64, o *Order) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var s PlainStock
		if err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Take(&s, item).Error; err != nil {
			return err
		}
		if err := take(&s.Remaining); err != nil {
			return err
		}
		err := tx.Model(&s).Updates(map[string]any{"remaining": s.Remaining, "version": s.Version + 1}).Error
		if err != nil || o == nil {
			return err
		}
		return tx.Create(o).Error
	})
}

// sellOptimistic updates the row if it is as it was read, and otherwise begins
// again after a pause that doubles: a crowd that tries again at once lets hardly
// anybody through, and one that gives up leaves the shelf half full.
func sellOptimistic(ctx context.Context, db *gorm.DB, item int64) error {
	const least, most = 10 * time.Millisecond, 640 * time.Millisecond
	for pause := least; ; pause = min(2*pause, most) {
		err := sellOnce(ctx, db, item)
		if !errors.Is(err, errConflict) {
			return err
		}
		select {
		case <-time.After(rand.N(pause)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sellOnce updates the row if it is as it was read, else it returns errConflict.
func sellOnce(ctx context.Context, db *gorm.DB, item int64) error {
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
