package gormsuite_test

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// changed is a feature that updates some of three people.
func changed(update func(db *gorm.DB, p []Person) *gorm.DB) func(db *gorm.DB) error {
	return made(func(db *gorm.DB, p []Person) error { return noted(db, update(db, p), p) }, "a", "b", "c")
}

var updateFeatures = []feature{
	{name: "column", run: changed(func(db *gorm.DB, p []Person) *gorm.DB { return db.Model(&p[0]).Update("age", 40) })},
	{name: "struct", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Updates(Person{Age: 0, Home: Address{City: "Paris"}})
	})},
	{name: "map", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Updates(map[string]any{"age": 0, "home_city": "Paris"})
	})},
	{name: "struct with select", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Select("Age", "Name").Updates(Person{Name: "z"})
	})},
	{name: "omit", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Omit("Name").Updates(map[string]any{"name": "z", "age": 4})
	})},
	{name: "column without hooks and times", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).UpdateColumns(Person{Age: 4})
	})},
	{name: "expression", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Update("age", gorm.Expr("age * ? + ?", 2, 1))
	})},
	{name: "subquery", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Update("home_city", db.Model(&Setting{}).Select("COALESCE(MAX(name), 'none')"))
	})},
	{name: "condition", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&Person{}).Where("age > ?", 20).Updates(Person{Age: 50})
	})},
	{name: "nothing matches", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Where("age > ?", 90).Update("age", 50)
	})},
	{name: "slice", run: changed(func(db *gorm.DB, p []Person) *gorm.DB { return db.Model(&p).Update("age", 50) })},
	{name: "slice of which one is gone", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		if result := db.Unscoped().Delete(&Person{}, p[1].ID); result.Error != nil {
			return result
		}
		return db.Model(&p).Update("age", 50)
	})},
	{name: "without a condition", fail: true, run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&Person{}).Update("age", 50)
	})},
	{name: "all rows, allowed", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&Person{}).Update("age", 50)
	})},
	{name: "field that only a create sets", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Updates(Person{Pin: "new", Age: 3})
	})},
	{name: "serializer", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Model(&p[0]).Update("tags", []string{"new"})
	})},
	{name: "returning", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		if db.Name() == "mysql" { // which has no UPDATE .. RETURNING
			return db.Model(&p[0]).Update("age", 4)
		}
		return db.Model(&p[0]).Clauses(clause.Returning{}).Update("age", gorm.Expr("age + 1"))
	})},
	{name: "composite key", run: withAda(func(db *gorm.DB, a *Person) error {
		return noted(db, db.Model(&a.Invoices[0].Items[1]).Update("amount", 70))
	})},
	{name: "duplicate", fail: true, run: changed(func(db *gorm.DB, p []Person) *gorm.DB { return db.Model(&p[0]).Update("name", "b") })},
	{name: "unknown column", fail: true, run: changed(func(db *gorm.DB, p []Person) *gorm.DB { return db.Model(&p[0]).Update("missing", 1) })},
	{name: "exec", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		return db.Exec("UPDATE people SET age = ? WHERE id IN ?", 9, []uint{p[0].ID, p[2].ID})
	})},
	{name: "save", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		p[0].Age, p[0].Name = 0, "z"
		return db.Save(&p[0])
	})},
	{name: "save of a slice", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		p[0].Age, p[1].Name = 7, "z"
		return db.Save(&p)
	})},
	{name: "save of a row that is gone", run: changed(func(db *gorm.DB, p []Person) *gorm.DB {
		if result := db.Unscoped().Delete(&Person{}, p[0].ID); result.Error != nil {
			return result
		}
		return db.Save(&p[0])
	})},
	{name: "save with loaded associations", run: withAda(func(db *gorm.DB, a *Person) error {
		var p Person
		err := db.Preload("Passport").Preload("Labels").Preload("Invoices.Items").Preload("Firm").Take(&p, a.ID).Error
		if err != nil {
			return err
		}
		p.Passport.No, p.Invoices[0].Items[0].Amount, p.Firm.Name = "p2", 99, "other"
		return noted(db, db.Save(&p), p)
	})},
	{name: "save with all associations", run: withAda(func(db *gorm.DB, a *Person) error {
		a.Passport.No, a.Invoices[0].Items[0].Amount, a.Firm.Name, a.Team[0].Age = "p2", 99, "other", 77
		return noted(db, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(a), a.ID)
	})},
	{name: "update with a new association", run: withAda(func(db *gorm.DB, a *Person) error {
		return noted(db, db.Model(&Person{Model: gorm.Model{ID: a.ID}}).Updates(Person{Age: 3, Labels: []Label{{Name: "new"}}, Firm: &Firm{Name: "new"}}))
	})},
	{name: "upsert of an association", run: withAda(func(db *gorm.DB, a *Person) error {
		b := Person{Name: "b", Team: a.Team, Passport: a.Passport, Labels: a.Labels}
		return noted(db, db.Create(&b), b)
	})},
	{name: "generics", run: made(func(db *gorm.DB, p []Person) error {
		ctx := db.Statement.Context
		n, err := gorm.G[Person](db).Where("name = ?", "a").Update(ctx, "age", 5)
		m, err2 := gorm.G[Person](db).Where("age > ?", 6).Updates(ctx, Person{Age: 6})
		note(db, n, m)
		return errors.Join(err, err2)
	}, "a", "b")},
}
