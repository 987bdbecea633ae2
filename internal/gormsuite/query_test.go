package gormsuite_test

import (
	"database/sql"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// found is a feature that finds some of four people.
func found(find func(db *gorm.DB, list *[]Person) *gorm.DB) func(db *gorm.DB) error {
	return made(func(db *gorm.DB, _ []Person) error {
		var list []Person
		return noted(db, find(db.Order("id"), &list), list)
	}, "a", "b", "c", "d")
}

var queryFeatures = []feature{
	{name: "first, last and take", run: made(func(db *gorm.DB, p []Person) error {
		var first, last, take Person
		return errors.Join(noted(db, db.First(&first), first), noted(db, db.Last(&last), last), noted(db, db.Take(&take, p[1].ID), take))
	}, "a", "b", "c")},
	{name: "not found", fail: true, run: func(db *gorm.DB) error { return db.First(&Person{}, "name = ?", "a").Error }},
	{name: "find nothing", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB { return db.Find(list, "name = ?", "z") })},
	{name: "missing table", fail: true, run: func(db *gorm.DB) error { return db.Table("missing").Find(&[]Person{}).Error }},
	{name: "struct condition", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB { return db.Where(&Person{Name: "b"}).Find(list) })},
	{name: "struct condition with zero", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		return db.Where(&Person{Name: "b"}, "Name", "Age").Find(list)
	})},
	{name: "map condition", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		return db.Where(map[string]any{"name": []string{"a", "c"}}).Find(list)
	})},
	{name: "named arguments", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		return db.Where("age > @low AND name <> @name", sql.Named("low", 20), sql.Named("name", "c")).Find(list)
	})},
	{name: "or, not and groups", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		return db.Where(db.Session(&gorm.Session{NewDB: true}).Where("name = ?", "a").Or("name = ?", "b")).Not("age = ?", 20).Or(Person{Name: "d"}).Find(list)
	})},
	{name: "clauses", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		return db.Clauses(clause.Gte{Column: "age", Value: 21}, clause.Limit{Limit: new(1)}).Find(list)
	})},
	{name: "limit, offset and order", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		return db.Order(clause.OrderByColumn{Column: clause.Column{Name: "name"}, Desc: true, Reorder: true}).Limit(2).Offset(1).Find(list)
	})},
	{name: "subquery", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		fresh := db.Session(&gorm.Session{NewDB: true})
		return db.Where("age > (?)", fresh.Model(&Person{}).Select("AVG(age)")).Find(list)
	})},
	{name: "from a subquery", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		fresh := db.Session(&gorm.Session{NewDB: true})
		return db.Table("(?) AS p", fresh.Model(&Person{}).Where("age > ?", 20)).Where("p.age < ?", 23).Find(list)
	})},
	{name: "for update", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		if db.Name() != "sqlite" {
			db = db.Clauses(clause.Locking{Strength: "UPDATE"})
		}
		return db.Find(list)
	})},
	{name: "query fields", run: found(func(db *gorm.DB, list *[]Person) *gorm.DB {
		return db.Session(&gorm.Session{QueryFields: true}).Find(list)
	})},
	{name: "smaller struct", run: made(func(db *gorm.DB, _ []Person) error {
		var list []struct {
			ID   uint
			Name string
		}
		return noted(db, db.Model(&Person{}).Order("id").Find(&list), list)
	}, "a", "b")},
	{name: "map", run: made(func(db *gorm.DB, _ []Person) error {
		one, list := map[string]any{}, []map[string]any{}
		return errors.Join(
			noted(db, db.Model(&Person{}).Order("id").Select("name", "age").Take(&one), one),
			noted(db, db.Model(&Person{}).Order("id").Select("name").Find(&list), list))
	}, "a", "b")},
	{name: "pluck, count and distinct", run: made(func(db *gorm.DB, _ []Person) error {
		var names []string
		var all, some int64
		return errors.Join(
			noted(db, db.Model(&Person{}).Order("name").Pluck("name", &names), names),
			noted(db, db.Model(&Person{}).Count(&all), all),
			noted(db, db.Model(&Person{}).Where("age > ?", 20).Distinct("age").Count(&some), some))
	}, "a", "b", "c")},
	{name: "group and having", run: made(func(db *gorm.DB, _ []Person) error {
		var list []struct {
			Age  int
			Many int
		}
		return noted(db, db.Model(&Person{}).Select("age, COUNT(*) AS many").Group("age").Having("COUNT(*) > ?", 0).Order("age").Scan(&list), list)
	}, "a", "b", "c")},
	{name: "find in batches", run: made(func(db *gorm.DB, _ []Person) error {
		var list []Person
		return noted(db, db.Where("age > ?", 20).FindInBatches(&list, 2, func(tx *gorm.DB, batch int) error {
			note(db, batch, tx.RowsAffected, list)
			return tx.Session(&gorm.Session{NewDB: true}).Create(&Label{Name: "in a batch"}).Error
		}))
	}, "a", "b", "c", "d")},
	{name: "rows", run: made(func(db *gorm.DB, _ []Person) error {
		rows, err := db.Model(&Person{}).Order("id").Rows()
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var p Person
			if err := db.ScanRows(rows, &p); err != nil {
				return err
			}
			note(db, p)
		}
		return rows.Err()
	}, "a", "b", "c")},
	{name: "row", run: made(func(db *gorm.DB, _ []Person) error {
		var name string
		err := db.Model(&Person{}).Where("age = ?", 21).Select("name").Row().Scan(&name)
		note(db, name)
		return err
	}, "a", "b")},
	{name: "raw", run: made(func(db *gorm.DB, _ []Person) error {
		var list []Person
		return noted(db, db.Raw("SELECT * FROM people WHERE age > @age ORDER BY id", map[string]any{"age": 20}).Scan(&list), list)
	}, "a", "b", "c")},
	{name: "broken SQL", fail: true, run: func(db *gorm.DB) error { return db.Raw("SELEKT 1").Scan(new(int)).Error }},
	{name: "connection", run: made(func(db *gorm.DB, _ []Person) error {
		result := db.Session(&gorm.Session{PrepareStmt: false, SkipHooks: true}).Find(&[]Person{})
		return noted(db, result)
	}, "a")},
	{name: "generics", run: made(func(db *gorm.DB, p []Person) error {
		ctx := db.Statement.Context
		one, err := gorm.G[Person](db).Where("name = ?", "a").First(ctx)
		list, err2 := gorm.G[Person](db).Where("age > ?", 20).Order("id").Find(ctx)
		n, err3 := gorm.G[Person](db).Count(ctx, "id")
		note(db, one, list, n)
		return errors.Join(err, err2, err3)
	}, "a", "b", "c")},
	{name: "migrator", run: func(db *gorm.DB) error {
		m := db.Migrator()
		note(db, m.HasTable(&Person{}), m.HasTable("missing"), m.HasColumn(&Person{}, "Name"), m.HasIndex(&Person{}, "Name"))
		types, err := m.ColumnTypes(&Person{})
		for _, c := range types {
			note(db, c.Name(), c.DatabaseTypeName())
		}
		return err
	}},
}
