package wild

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// stocks makes rows 1 to 4, of which 2 and 4 have nothing left.
func (e *env) stocks() {
	e.t.Helper()
	e.migrate(&Stock{})
	for i := range int64(4) {
		e.create(&Stock{ID: i + 1, Amount: int(i+1) % 2})
	}
}

// load loads the stocks with the given ids.
func load(tx *gorm.DB, ids ...int64) (rows []Stock, err error) {
	err = tx.Order("id").Find(&rows, ids).Error
	return rows, err
}

// TestBatchJudgesOnlyStaleRows: a row that the key does not protect fails a
// condition, and the protected one is as it was loaded. There is one caller.
func TestBatchJudgesOnlyStaleRows(t *testing.T) {
	for name, write := range map[string]func(tx *gorm.DB, rows []Stock) error{
		"update": func(tx *gorm.DB, rows []Stock) error {
			return tx.Model(&rows).Where("amount > 0").Update("name", "x").Error
		},
		"delete": func(tx *gorm.DB, rows []Stock) error { return tx.Where("amount > 0").Delete(&rows).Error },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				e.stocks()
				e.want(e.Do(bg, "stock:1", func(_ context.Context, tx *gorm.DB) error {
					rows, err := load(tx, 1, 2)
					if err != nil {
						return err
					}
					return write(tx, rows)
				}, guard.Protects(&Stock{ID: 1})), "conflict", 0)
			})
		})
	}
}

// TestBatchWithARowOfAnotherKey: another caller writes the row that the key does not
// protect, under that row's own key. On SQLite it could not.
func TestBatchWithARowOfAnotherKey(t *testing.T) {
	on(t, "mysql postgres", func(e *env) {
		e.stocks()
		e.want(e.Do(bg, "stock:1", func(_ context.Context, tx *gorm.DB) error {
			rows, err := load(tx, 1, 2)
			if err != nil {
				return err
			}
			e.must(e.peer.Apply(bg, "stock:2", guard.Update(&Stock{ID: 2}, func(s *Stock) error { s.Amount++; return nil })))
			return tx.Model(&rows).Update("name", "x").Error
		}, guard.Protects(&Stock{ID: 1})), e.unless1020("conflict"), 0)
	})
}

// TestBatchAfterOwnWriteThroughACopy: the operation itself has made a version in the
// batch old, through a loop variable. There is one caller.
func TestBatchAfterOwnWriteThroughACopy(t *testing.T) {
	each(t, func(e *env) {
		e.stocks()
		e.want(e.Do(bg, "stock:1", func(_ context.Context, tx *gorm.DB) error {
			rows, err := load(tx, 1, 2, 3)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if r.Amount > 0 {
					continue
				}
				if err := tx.Model(&r).Update("amount", 7).Error; err != nil {
					return err
				}
			}
			return tx.Model(&rows).Update("name", "x").Error
		}, guard.Protects(&Stock{ID: 1}, &Stock{ID: 2}, &Stock{ID: 3})), "conflict", 0)
	})
}

// TestWriteOfAnotherRowHidesNoStaleVersion: an update of another row of the table
// comes first.
func TestWriteOfAnotherRowHidesNoStaleVersion(t *testing.T) {
	each(t, func(e *env) {
		e.stocks()
		e.must(e.db.Model(&Stock{}).Where("id = 1").Update("amount", 8).Error)
		e.want(e.Do(bg, "stock:1", func(_ context.Context, tx *gorm.DB) error {
			if err := tx.Model(&Stock{ID: 2}).Update("amount", 5).Error; err != nil {
				return err
			}
			return tx.Save(&Stock{ID: 1, Amount: 4, Version: 1}).Error
		}, guard.Protects(&Stock{ID: 1})), "stale", 0)
	})
}
