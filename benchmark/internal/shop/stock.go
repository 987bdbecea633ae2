package shop

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/guard"
)

// sellPessimistic sells one of an item. It locks the row before it looks at it.
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

// sellGuarded is the change of belay-stock: it sells one of an item.
func sellGuarded(item int64) guard.Change {
	return guard.Update(&Stock{ID: item}, func(s *Stock) error { return take(&s.Remaining) })
}
