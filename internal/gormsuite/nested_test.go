package gormsuite_test

import (
	"errors"

	"gorm.io/gorm"
)

// label creates one.
func label(db *gorm.DB, name string) error { return db.Create(&Label{Name: name}).Error }

var nestedFeatures = []feature{
	{name: "transaction", run: func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error { return label(tx, "a") })
	}},
	{name: "transaction that fails", run: func(db *gorm.DB) error {
		err := db.Transaction(func(tx *gorm.DB) error { return errors.Join(label(tx, "a"), errUndo) })
		note(db, errors.Is(err, errUndo))
		return label(db, "b")
	}},
	{name: "transaction in a transaction", run: func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			failed := tx.Transaction(func(tx *gorm.DB) error { return errors.Join(label(tx, "a"), errUndo) })
			note(db, errors.Is(failed, errUndo))
			return errors.Join(label(tx, "b"), tx.Transaction(func(tx *gorm.DB) error { return label(tx, "c") }))
		})
	}},
	{name: "without savepoints", run: func(db *gorm.DB) error {
		return db.Session(&gorm.Session{DisableNestedTransaction: true}).Transaction(func(tx *gorm.DB) error {
			return tx.Transaction(func(tx *gorm.DB) error { return label(tx, "a") })
		})
	}},
	{name: "duplicate in a nested transaction", run: func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&Setting{Name: "a"}).Error; err != nil {
				return err
			}
			failed := tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&Setting{Name: "a"}).Error })
			note(db, failed != nil)
			return label(tx, "after it")
		})
	}},
	{name: "savepoint", run: func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(label(tx, "a"), tx.SavePoint("one").Error, label(tx, "b"), tx.RollbackTo("one").Error, label(tx, "c"))
		})
	}},
	{name: "without a default transaction", run: func(db *gorm.DB) error {
		return label(db.Session(&gorm.Session{SkipDefaultTransaction: true}), "a")
	}},
	{name: "panic", run: func(db *gorm.DB) error {
		func() {
			defer func() { note(db, recover()) }()
			_ = db.Transaction(func(tx *gorm.DB) error {
				note(db, label(tx, "a"))
				panic("boom")
			})
		}()
		return label(db, "b")
	}},
}
