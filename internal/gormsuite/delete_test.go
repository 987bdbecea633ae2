package gormsuite_test

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var deleteFeatures = []feature{
	{name: "softly", run: made(func(db *gorm.DB, p []Person) error {
		var left []Person
		return errors.Join(noted(db, db.Delete(&p[0]), p[0].DeletedAt), noted(db, db.Order("id").Find(&left), left))
	}, "a", "b")},
	{name: "unscoped", run: made(func(db *gorm.DB, p []Person) error {
		return errors.Join(
			noted(db, db.Delete(&p[0])),
			noted(db, db.Unscoped().Delete(&p[0])),
			noted(db, db.Unscoped().Delete(&p[1])))
	}, "a", "b")},
	{name: "restored", run: made(func(db *gorm.DB, p []Person) error {
		return errors.Join(
			noted(db, db.Delete(&p[0])),
			noted(db, db.Unscoped().Model(&p[0]).Update("deleted_at", nil)))
	}, "a")},
	{name: "by primary key", run: made(func(db *gorm.DB, p []Person) error {
		return noted(db, db.Delete(&Person{}, p[1].ID))
	}, "a", "b")},
	{name: "by a condition", run: made(func(db *gorm.DB, _ []Person) error {
		return noted(db, db.Where("age > ?", 20).Delete(&Person{}))
	}, "a", "b", "c")},
	{name: "slice", run: made(func(db *gorm.DB, p []Person) error { return noted(db, db.Delete(&p)) }, "a", "b", "c")},
	{name: "slice of which one is gone", run: made(func(db *gorm.DB, p []Person) error {
		return errors.Join(noted(db, db.Unscoped().Delete(&p[1])), noted(db, db.Unscoped().Delete(&p)))
	}, "a", "b", "c")},
	{name: "nothing matches", run: made(func(db *gorm.DB, p []Person) error {
		return noted(db, db.Where("age > 90").Delete(&p[0]))
	}, "a")},
	{name: "without a condition", fail: true, run: made(func(db *gorm.DB, _ []Person) error {
		return db.Delete(&Person{}).Error
	}, "a")},
	{name: "all rows, allowed", run: made(func(db *gorm.DB, _ []Person) error {
		return noted(db, db.Session(&gorm.Session{AllowGlobalUpdate: true}).Unscoped().Delete(&Person{}))
	}, "a", "b")},
	{name: "composite key", run: withAda(func(db *gorm.DB, a *Person) error {
		return noted(db, db.Delete(&a.Invoices[0].Items))
	})},
	// One at a time: gorm deletes several in any order.
	{name: "with has one", run: withAda(func(db *gorm.DB, a *Person) error { return noted(db, db.Select("Passport").Delete(a)) })},
	{name: "with has many", run: withAda(func(db *gorm.DB, a *Person) error {
		return noted(db, db.Select("Items").Delete(&a.Invoices[0]))
	})},
	{name: "with many to many", run: withAda(func(db *gorm.DB, a *Person) error { return noted(db, db.Select("Labels").Delete(a)) })},
	{name: "with polymorphic", run: withAda(func(db *gorm.DB, a *Person) error { return noted(db, db.Select("Notes").Delete(a)) })},
	{name: "foreign key", fail: true, run: withAda(func(db *gorm.DB, a *Person) error {
		if db.Name() == "sqlite" { // which checks none
			return errUndo
		}
		return db.Unscoped().Delete(a).Error
	})},
	{name: "returning", run: made(func(db *gorm.DB, p []Person) error {
		var gone []Person
		return noted(db, db.Unscoped().Clauses(clause.Returning{}).Where("id = ?", p[0].ID).Delete(&gone), gone)
	}, "a", "b")},
	{name: "exec", run: made(func(db *gorm.DB, p []Person) error {
		return noted(db, db.Exec("DELETE FROM people WHERE id = ?", p[0].ID))
	}, "a", "b")},
	{name: "and create again", run: func(db *gorm.DB) error {
		return errors.Join(
			db.Create(&Setting{Name: "a", Value: "1"}).Error,
			db.Delete(&Setting{Name: "a"}).Error,
			db.Create(&Setting{Name: "a", Value: "2"}).Error)
	}},
	{name: "generics", run: made(func(db *gorm.DB, _ []Person) error {
		n, err := gorm.G[Person](db).Where("name = ?", "a").Delete(db.Statement.Context)
		note(db, n)
		return err
	}, "a", "b")},
}
