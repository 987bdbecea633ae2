package gormsuite_test

import (
	"context"
	"errors"

	"gorm.io/gorm"
)

func grown(db *gorm.DB) *gorm.DB { return db.Where("age > ?", 20) }

func page(n int) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB { return db.Order("id").Offset(n).Limit(1) }
}

func broken(db *gorm.DB) *gorm.DB {
	_ = db.AddError(errUndo)
	return db
}

var scopeFeatures = []feature{
	{name: "query", run: made(func(db *gorm.DB, _ []Person) error {
		var list []Person
		return noted(db, db.Scopes(grown, page(1)).Find(&list), list)
	}, "a", "b", "c")},
	{name: "count", run: made(func(db *gorm.DB, _ []Person) error {
		var n int64
		return noted(db, db.Model(&Person{}).Scopes(grown).Count(&n), n)
	}, "a", "b", "c")},
	{name: "update and delete", run: made(func(db *gorm.DB, _ []Person) error {
		return errors.Join(
			noted(db, db.Model(&Person{}).Scopes(grown).Update("age", 33)),
			noted(db, db.Scopes(grown).Delete(&Person{})))
	}, "a", "b", "c")},
	{name: "table", run: func(db *gorm.DB) error {
		table := func(db *gorm.DB) *gorm.DB { return db.Table("settings") }
		return errors.Join(
			db.Scopes(table).Create(&Setting{Name: "a"}).Error,
			db.Scopes(table).Where("name = ?", "a").Update("value", "2").Error)
	}},
	{name: "preload", run: withAda(func(db *gorm.DB, a *Person) error {
		var p Person
		return noted(db, db.Preload("Labels", func(db *gorm.DB) *gorm.DB { return db.Scopes(page(1)) }).Take(&p, a.ID), p.Labels)
	})},
	{name: "with an error", fail: true, run: made(func(db *gorm.DB, _ []Person) error {
		return db.Scopes(broken).Find(&[]Person{}).Error
	}, "a")},
	{name: "shared conditions", run: made(func(db *gorm.DB, _ []Person) error {
		base := db.Where("age > ?", 20).Session(&gorm.Session{})
		var one, two []Person
		return errors.Join(
			noted(db, base.Where("name = ?", "b").Find(&one), one),
			noted(db, base.Where("name = ?", "c").Find(&two), two))
	}, "a", "b", "c")},
	{name: "settings of a statement", run: func(db *gorm.DB) error {
		tx := db.Set("who", "me").InstanceSet("where", "here")
		who, ok := tx.Get("who")
		where, ok2 := tx.InstanceGet("where")
		note(db, who, ok, where, ok2)
		return tx.Create(&Label{Name: "a"}).Error
	}},
	{name: "context", run: func(db *gorm.DB) error {
		type key struct{}
		tx := db.WithContext(context.WithValue(db.Statement.Context, key{}, "value"))
		note(db, tx.Statement.Context.Value(key{}))
		return tx.Create(&Label{Name: "a"}).Error
	}},
	{name: "debug", run: func(db *gorm.DB) error { return db.Debug().Create(&Label{Name: "a"}).Error }},
}
