package gormsuite_test

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// association is a feature of one association of ada: what it does, and what is
// loaded and counted afterwards.
func association(name string, do func(a *gorm.Association) error) func(db *gorm.DB) error {
	return withAda(func(db *gorm.DB, a *Person) error {
		err := do(db.Model(a).Association(name))
		note(db, a)
		var after Person
		count := db.Model(&Person{Model: gorm.Model{ID: a.ID}}).Association(name).Count()
		return errors.Join(err, noted(db, db.Preload(name, byID).Take(&after, a.ID), count, after))
	})
}

func byID(db *gorm.DB) *gorm.DB { return db.Order("id") }

var associationFeatures = []feature{
	{name: "preload all", run: withAda(func(db *gorm.DB, a *Person) error {
		var p Person
		return noted(db, db.Preload(clause.Associations, byID).Take(&p, a.ID), p)
	})},
	{name: "preload nested", run: withAda(func(db *gorm.DB, a *Person) error {
		var list []Person
		return noted(db, db.Order("id").Preload("Invoices", byID).Preload("Invoices.Items", "amount > ?", 5).Preload("Chief.Team", byID).Find(&list), list)
	})},
	{name: "joins", run: withAda(func(db *gorm.DB, a *Person) error {
		var list []Person
		return noted(db, db.Joins("Firm").Joins("Passport").InnerJoins("Chief").Order("people.id").Find(&list), list)
	})},
	{name: "joins by SQL", run: withAda(func(db *gorm.DB, a *Person) error {
		var list []Person
		return noted(db, db.Joins("JOIN passports ON passports.person_id = people.id AND passports.no = ?", "p1").Find(&list), list)
	})},
	{name: "preload of a missing one", fail: true, run: withAda(func(db *gorm.DB, a *Person) error {
		return db.Preload("Missing").Take(&Person{}, a.ID).Error
	})},
	{name: "find", run: withAda(func(db *gorm.DB, a *Person) error {
		var labels []Label
		var invoices []Invoice
		err := errors.Join(
			db.Model(a).Order("id").Association("Labels").Find(&labels, "name <> ?", "second"),
			db.Model(a).Order("id").Association("Invoices").Find(&invoices))
		note(db, labels, invoices)
		return err
	})},
	{name: "append has many", run: association("Invoices", func(a *gorm.Association) error { return a.Append(&Invoice{No: "i3"}) })},
	{name: "replace has many", run: association("Invoices", func(a *gorm.Association) error { return a.Replace(&Invoice{No: "i3"}) })},
	{name: "delete has many", run: association("Notes", func(a *gorm.Association) error { return a.Delete(&Note{ID: 1 << 30}) })},
	{name: "clear has many", run: association("Invoices", func(a *gorm.Association) error { return a.Clear() })},
	{name: "append has one", run: association("Passport", func(a *gorm.Association) error { return a.Append(&Passport{No: "p3"}) })},
	{name: "append belongs to", run: association("Firm", func(a *gorm.Association) error { return a.Append(&Firm{Name: "new"}) })},
	{name: "clear belongs to", run: association("Firm", func(a *gorm.Association) error { return a.Clear() })},
	{name: "append many to many", run: association("Labels", func(a *gorm.Association) error { return a.Append([]Label{{Name: "third"}, {Name: "fourth"}}) })},
	{name: "replace many to many", run: association("Labels", func(a *gorm.Association) error { return a.Replace(&Label{Name: "third"}) })},
	{name: "clear many to many", run: association("Labels", func(a *gorm.Association) error { return a.Clear() })},
	{name: "append to itself", run: association("Friends", func(a *gorm.Association) error { return a.Append(&Person{Name: "annabella"}) })},
	{name: "clear of itself", run: association("Team", func(a *gorm.Association) error { return a.Clear() })},
	{name: "append polymorphic", run: association("Notes", func(a *gorm.Association) error { return a.Append(&Note{Text: "note h"}) })},
	{name: "replace polymorphic", run: association("Notes", func(a *gorm.Association) error { return a.Replace(&Note{Text: "note h"}) })},
	{name: "unscoped replace", run: association("Notes", func(a *gorm.Association) error { return a.Unscoped().Replace(&Note{Text: "note h"}) })},
	{name: "delete many to many", run: withAda(func(db *gorm.DB, a *Person) error {
		return db.Model(a).Association("Labels").Delete(a.Labels[0])
	})},
	{name: "delete belongs to", run: withAda(func(db *gorm.DB, a *Person) error {
		err := db.Model(a).Association("Firm").Delete(a.Firm)
		return errors.Join(err, noted(db, db.Save(a), a.FirmID))
	})},
	{name: "existing rows", run: withAda(func(db *gorm.DB, a *Person) error {
		p, err := people(db, "b", "c")
		return errors.Join(err,
			db.Model(&p[0]).Association("Labels").Append(a.Labels),
			db.Model(&p[1]).Association("Labels").Replace(&a.Labels[0], &Label{Name: "new"}),
			db.Model(&p[0]).Association("Invoices").Append(&a.Invoices[1]))
	})},
	{name: "batch", run: withAda(func(db *gorm.DB, a *Person) error {
		p, err := people(db, "b", "c")
		return errors.Join(err,
			db.Model(&p).Association("Firm").Append(a.Firm, &Firm{Name: "other"}),
			db.Model(&p).Association("Labels").Append(&a.Labels[0], &[]Label{{Name: "x"}, {Name: "y"}}),
			db.Model(&p).Association("Labels").Clear())
	})},
	{name: "missing", fail: true, run: withAda(func(db *gorm.DB, a *Person) error {
		return db.Model(a).Association("Missing").Clear()
	})},
}
