package gormsuite_test

import (
	"errors"

	"gorm.io/gorm"
)

// refusing is a feature whose invoice is refused by that hook.
func refusing(hook string, do func(db *gorm.DB, i *Invoice) error) feature {
	return feature{name: hook + " refuses", fail: true, run: func(db *gorm.DB) error {
		i := Invoice{No: "no " + hook}
		if err := db.Session(&gorm.Session{SkipHooks: true}).Create(&i).Error; err != nil {
			return err
		}
		return do(db, &i)
	}}
}

func again(db *gorm.DB, i *Invoice) error  { return db.Create(&Invoice{No: i.No, Total: 5}).Error }
func save(db *gorm.DB, i *Invoice) error   { return db.Save(i).Error }
func remove(db *gorm.DB, i *Invoice) error { return db.Delete(i).Error }
func load(db *gorm.DB, i *Invoice) error   { return db.Take(&Invoice{}, i.ID).Error }

var hookFeatures = []feature{
	{name: "all, in their order", run: func(db *gorm.DB) error {
		i := Invoice{No: "i1", Items: []Item{{Place: 1}}}
		err := db.Create(&i).Error
		i.Total = 8
		return errors.Join(err, db.Save(&i).Error, db.Model(&i).Update("no", "i2").Error, db.Take(&Invoice{}, i.ID).Error,
			db.Select("Items").Delete(&i).Error)
	}},
	{name: "of a slice", run: func(db *gorm.DB) error {
		list := []Invoice{{No: "i1"}, {No: "i2"}}
		return errors.Join(db.Create(&list).Error, db.Model(&list).Update("total", 3).Error, db.Find(&[]Invoice{}).Error, db.Delete(&list).Error)
	}},
	{name: "skipped", run: func(db *gorm.DB) error {
		db = db.Session(&gorm.Session{SkipHooks: true})
		i := Invoice{No: "no BeforeCreate"}
		return errors.Join(db.Create(&i).Error, db.Save(&i).Error, db.Take(&i).Error, db.Delete(&i).Error)
	}},
	{name: "update columns has none", run: func(db *gorm.DB) error {
		i := Invoice{No: "i1"}
		return errors.Join(db.Create(&i).Error, db.Model(&i).UpdateColumn("total", 4).Error)
	}},
	{name: "AfterCreate refuses", fail: true, run: func(db *gorm.DB) error {
		return db.Create(&Invoice{No: "no AfterCreate"}).Error // with what it did
	}},
	{name: "of an association refuses", fail: true, run: func(db *gorm.DB) error {
		return db.Create(&Person{Name: "a", Invoices: []Invoice{{No: "i1"}, {No: "no AfterSave"}}}).Error
	}},
	{name: "of a preload refuses", fail: true, run: withAda(func(db *gorm.DB, a *Person) error {
		err := db.Session(&gorm.Session{SkipHooks: true}).Create(&Invoice{No: "no AfterFind", PersonID: &a.ID}).Error
		return errors.Join(err, db.Preload("Invoices").Take(&Person{}, a.ID).Error)
	})},
	refusing("BeforeCreate", again),
	refusing("BeforeSave", save),
	refusing("BeforeUpdate", save),
	refusing("AfterUpdate", save),
	refusing("AfterSave", save),
	refusing("BeforeDelete", remove),
	refusing("AfterDelete", remove),
	refusing("AfterFind", load),
}
