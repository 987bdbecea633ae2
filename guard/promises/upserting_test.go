package promises_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// Skipped has a hook that leaves out a row which is there.
type Skipped struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func (*Skipped) BeforeCreate(tx *gorm.DB) error {
	tx.Statement.AddClause(clause.OnConflict{DoNothing: true})
	return nil
}

// Overwritten has one that updates it.
type Overwritten struct {
	ID     uint
	No     string `gorm:"size:64;uniqueIndex"`
	Amount int
}

func (*Overwritten) BeforeCreate(tx *gorm.DB) error {
	tx.Statement.AddClause(clause.OnConflict{UpdateAll: true, Columns: []clause.Column{{Name: "no"}}})
	return nil
}

// TestInsertThatUpserts: a hook that makes an upsert of an Insert does not have its repeat
// take effect.
func TestInsertThatUpserts(t *testing.T) {
	for name, insert := range map[string]func() guard.Change{
		"nothing": func() guard.Change { return guard.Insert(&Skipped{No: "1"}) },
		"all":     func() guard.Change { return guard.Insert(&Overwritten{No: "1", Amount: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				wantNil(e.t, e.db.AutoMigrate(&Skipped{}, &Overwritten{}))
				e.create(&Stock{ID: 1, Left: 9})
				for range 2 {
					err := e.Apply(bg, "stock:1", guard.All(insert(), guard.Update(&Stock{ID: 1}, take)))
					if err == nil {
						e.t.Error("an Insert that no repeat fails is made")
					}
				}
				if left := e.stock(1).Left; left != 9 {
					e.t.Errorf("%d are left, want 9", left)
				}
			})
		})
	}
}

// TestInsertThatUpsertsIsSwallowed: an operation that goes on behind it is not committed.
func TestInsertThatUpsertsIsSwallowed(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Skipped{}))
		err := e.Do(bg, "skipped:1", func(ctx context.Context, tx *gorm.DB) error {
			_ = guard.Insert(&Skipped{No: "1"}).Run(ctx, tx)
			return nil
		})
		if n := e.count(&Skipped{}); err == nil || n != 0 {
			e.t.Errorf("%d rows, error %v", n, err)
		}
	})
}

// TestInsertedBehindDoNothing: gorm's DoNothing returns a row of MariaDB that is there as if it
// were inserted. Its repeat does not take effect.
func TestInsertedBehindDoNothing(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9}, &Order{No: "1"})
		err := e.Do(bg, "stock:1", func(ctx context.Context, tx *gorm.DB) error {
			made := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&Order{No: "1"})
			if err := guard.Inserted(ctx, guard.Row("orders", "no", "1"), made.RowsAffected, made.Error); err != nil {
				return err
			}
			return takeOne(1)(ctx, tx)
		}, guard.Protects(&Order{No: "1"}))
		if left := e.stock(1).Left; err == nil || left != 9 {
			e.t.Errorf("%d are left, error %v", left, err)
		}
	})
}

// Booked has a hook that writes to other tables.
type Booked struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func (*Booked) AfterCreate(tx *gorm.DB) error {
	tx = tx.Session(&gorm.Session{NewDB: true})
	if err := tx.Create(&Skipped{No: "audit"}).Error; err != nil {
		return err
	}
	return tx.Create(&Order{No: tx.NowFunc().String()}).Error
}

// TestInsertedBehindAHook: nor does it if a hook has written other tables since.
func TestInsertedBehindAHook(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Booked{}, &Skipped{}))
		e.create(&Stock{ID: 1, Left: 9}, &Booked{No: "1"})
		err := e.Do(bg, "stock:1", func(ctx context.Context, tx *gorm.DB) error {
			made := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&Booked{No: "1"})
			if err := guard.Inserted(ctx, guard.Row("bookeds", "no", "1"), made.RowsAffected, made.Error); err != nil {
				return err
			}
			return takeOne(1)(ctx, tx)
		})
		if left := e.stock(1).Left; err == nil || left != 9 {
			e.t.Errorf("%d are left, error %v", left, err)
		}
	})
}

// TestInsertedBesideAnUpsert: an upsert of another table says nothing of the row.
func TestInsertedBesideAnUpsert(t *testing.T) {
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	wantNil(t, db.AutoMigrate(&Order{}, &Skipped{}))
	g := guardtest.New(t, db)
	wantNil(t, g.Do(bg, "order:1", func(ctx context.Context, tx *gorm.DB) error {
		made := tx.Exec("INSERT IGNORE INTO orders (no) VALUES ('1')")
		err := tx.Create(&Skipped{No: "1"}).Error
		return errors.Join(err, guard.Inserted(ctx, guard.Row("orders", "no", "1"), made.RowsAffected, made.Error))
	}))
}

// TestCombinedInsertThatUpserts: nor does one that callers share, by a plugin.
func TestCombinedInsertThatUpserts(t *testing.T) {
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	wantNil(t, db.AutoMigrate(&Label{}))
	g := guardtest.New(t, db)
	wantNil(t, db.Callback().Create().Before("gorm:create").Register("upsert", func(db *gorm.DB) {
		db.Statement.AddClause(clause.OnConflict{DoNothing: true})
	}))
	inside.Of(g.Guard).NoTurnLimit()
	var all sync.WaitGroup
	wantNil(t, g.Do(bg, "labels", func(context.Context, *gorm.DB) error {
		for i := range 2 {
			all.Go(func() {
				insert := guard.Insert(&Label{Code: strconv.Itoa(i)})
				if err := g.Apply(bg, "labels", insert, guard.Wait(time.Minute), guard.Combine()); err == nil {
					t.Error("an Insert that no repeat fails is made")
				}
			})
			testwait.Until(t, "the caller queues", func() bool { return inside.Of(g.Guard).Lines() == 1 && inside.Of(g.Guard).Queued("labels") == i })
		}
		return nil
	}))
	all.Wait()
	var n int64
	wantNil(t, db.Model(&Label{}).Count(&n).Error)
	if n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}
