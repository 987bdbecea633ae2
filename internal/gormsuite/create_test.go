package gormsuite_test

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var createFeatures = []feature{
	{name: "one", run: func(db *gorm.DB) error {
		p := Person{Name: "a"}
		return noted(db, db.Create(&p), &p) // with the default of a column
	}},
	{name: "with all associations", run: withAda(func(db *gorm.DB, a *Person) error {
		note(db, a)
		return nil
	})},
	{name: "slice", run: made(func(db *gorm.DB, p []Person) error {
		note(db, p)
		return nil
	}, "a", "b", "c")},
	{name: "slice of pointers", run: func(db *gorm.DB) error {
		list := []*Label{{Name: "a"}, {ID: 900, Name: "b"}, {Name: "c"}}
		return noted(db, db.Create(list[:1]), list[0])
	}},
	{name: "empty slice", fail: true, run: func(db *gorm.DB) error {
		return errors.Join(db.Create(&Label{Name: "a"}).Error, db.Create(&[]Label{}).Error)
	}},
	{name: "in batches", run: func(db *gorm.DB) error {
		list := []Label{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		return noted(db, db.CreateInBatches(&list, 2), list)
	}},
	{name: "session's batch size", run: func(db *gorm.DB) error {
		list := []Label{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		return noted(db, db.Session(&gorm.Session{CreateBatchSize: 2}).Create(&list), list)
	}},
	{name: "map", run: func(db *gorm.DB) error {
		return noted(db, db.Model(&Label{}).Create(map[string]any{"Name": "a"}))
	}},
	{name: "maps", run: func(db *gorm.DB) error {
		return noted(db, db.Model(&Label{}).Create(&[]map[string]any{{"Name": "a"}, {"Name": "b"}}))
	}},
	{name: "expression", run: func(db *gorm.DB) error {
		return noted(db, db.Model(&Label{}).Create(map[string]any{"Name": clause.Expr{SQL: "UPPER(?)", Vars: []any{"a"}}}))
	}},
	{name: "select", run: func(db *gorm.DB) error {
		p := Person{Name: "a", Age: 3, Pin: "1", Labels: []Label{{Name: "l"}}}
		return noted(db, db.Select("Name", "Labels").Create(&p), &p)
	}},
	{name: "omit", run: func(db *gorm.DB) error {
		a := ada()
		return errors.Join(db.Create(a.Labels).Error, db.Omit("Age", "Firm", "Labels.*", "Friends", "Invoices").Create(a).Error)
	}},
	{name: "omit all associations", run: func(db *gorm.DB) error {
		return noted(db, db.Omit(clause.Associations).Create(ada()))
	}},
	{name: "primary key of the caller", run: func(db *gorm.DB) error {
		return noted(db, db.Create(&Setting{Name: "a", Value: "1"}))
	}},
	{name: "duplicate of a unique column", fail: true, run: made(func(db *gorm.DB, p []Person) error {
		return db.Create(&Person{Name: "a"}).Error
	}, "a")},
	{name: "duplicate primary key", fail: true, run: func(db *gorm.DB) error {
		return errors.Join(db.Create(&Setting{Name: "a"}).Error, db.Create(&Setting{Name: "a"}).Error)
	}},
	{name: "duplicate in a slice", fail: true, run: func(db *gorm.DB) error {
		_, err := people(db, "a", "b", "a")
		return err
	}},
	{name: "duplicate association", fail: true, run: withAda(func(db *gorm.DB, a *Person) error {
		return db.Create(&Person{Name: "b", Passport: &Passport{PersonID: a.ID, No: "p1"}, Team: []Person{{Name: "ada"}}, Invoices: []Invoice{{No: "i1"}}, Chief: &Person{Name: "b"}}).Error
	})},
	{name: "on conflict do nothing", run: func(db *gorm.DB) error {
		once := func() *gorm.DB {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Setting{Name: "a", Value: "1"})
		}
		return errors.Join(noted(db, once()), noted(db, once()))
	}},
	{name: "on conflict update columns", run: func(db *gorm.DB) error {
		put := func(value string) *gorm.DB {
			return db.Clauses(clause.OnConflict{
				Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"value"}),
			}).Create(&[]Setting{{Name: "a", Value: value}, {Name: "b", Value: value}})
		}
		return errors.Join(noted(db, put("1")), noted(db, put("2")))
	}},
	{name: "on conflict assign", run: func(db *gorm.DB) error {
		put := func() *gorm.DB {
			return db.Clauses(clause.OnConflict{
				Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.Assignments(map[string]any{"value": "again"}),
			}).Create(&Setting{Name: "a", Value: "1"})
		}
		return errors.Join(noted(db, put()), noted(db, put()))
	}},
	{name: "on conflict update all", run: func(db *gorm.DB) error {
		put := func(value string) *gorm.DB {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Setting{Name: "a", Value: value})
		}
		return errors.Join(noted(db, put("1")), noted(db, put("2")))
	}},
	{name: "returning", run: func(db *gorm.DB) error {
		l := Label{Name: "a"}
		return noted(db, db.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "name"}}}).Create(&l), l)
	}},
	{name: "dry run", run: func(db *gorm.DB) error {
		result := db.Session(&gorm.Session{DryRun: true}).Create(&Label{Name: "a"})
		note(db, result.Statement.SQL.String(), result.Statement.Vars)
		return errors.Join(result.Error, db.Create(&Label{Name: "b"}).Error)
	}},
	{name: "to SQL", run: func(db *gorm.DB) error {
		note(db, db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&Setting{Name: "a"}) }))
		return db.Create(&Label{Name: "b"}).Error
	}},
	{name: "first or create", run: func(db *gorm.DB) error {
		get := func() error {
			var l Label
			return noted(db, db.Where(Label{Name: "a"}).FirstOrCreate(&l), l)
		}
		return errors.Join(get(), get())
	}},
	{name: "first or create with attrs and assign", run: func(db *gorm.DB) error {
		get := func(age int) error {
			var p Person
			return noted(db, db.Where(Person{Name: "a"}).Attrs(Person{Pin: "1"}).Assign(Person{Age: age}).FirstOrCreate(&p), p.Pin, p.Age)
		}
		return errors.Join(get(1), get(2))
	}},
	{name: "first or init", run: func(db *gorm.DB) error {
		var l Label
		return noted(db, db.Where(Label{Name: "a"}).Attrs(Label{ID: 7}).FirstOrInit(&l), l)
	}},
	{name: "save of a new row", run: func(db *gorm.DB) error {
		return errors.Join(
			noted(db, db.Save(&Label{Name: "a"})),
			noted(db, db.Save(&Setting{Name: "a", Value: "1"})),
			noted(db, db.Save(&[]Setting{{Name: "a", Value: "2"}, {Name: "b", Value: "1"}})))
	}},
	{name: "generics", run: func(db *gorm.DB) error {
		ctx := db.Statement.Context
		l := Label{Name: "a"}
		list := []Label{{Name: "b"}, {Name: "c"}}
		err := errors.Join(gorm.G[Label](db).Create(ctx, &l), gorm.G[Label](db).CreateInBatches(ctx, &list, 1))
		note(db, l, list)
		return err
	}},
	{name: "with an ended context", fail: true, run: func(db *gorm.DB) error {
		if err := db.Create(&Label{Name: "a"}).Error; err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(db.Statement.Context)
		cancel()
		return db.WithContext(ctx).Create(&Label{Name: "b"}).Error
	}},
}
