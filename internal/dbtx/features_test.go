package dbtx_test

import (
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
)

type Basket struct {
	ID      uint
	Buyer   *Buyer
	BuyerID *uint
	Lines   []Line
	Tags    []Tag `gorm:"many2many:basket_tags"`
	Version dbguard.Version
}

type Buyer struct {
	ID      uint
	Name    string `gorm:"size:64"`
	Version dbguard.Version
}

type Line struct {
	ID       uint
	BasketID uint
	Amount   int
	Version  dbguard.Version
}

type Tag struct {
	ID   uint
	Name string `gorm:"size:64"`
}

// AfterCreate runs statements of its own.
func (b *Basket) AfterCreate(tx *gorm.DB) error {
	var n int64
	if err := tx.Model(&Basket{}).Count(&n).Error; err != nil {
		return err
	}
	return tx.Create(&Tag{Name: "made by a hook"}).Error
}

func (l *Line) AfterFind(tx *gorm.DB) error {
	return tx.Take(&Basket{}, l.BasketID).Error
}

// TestOrdinaryGorm: the rest of gorm works in a guarded transaction, and stays
// in it.
func TestOrdinaryGorm(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Buyer{}, &Basket{}, &Line{}, &Tag{}))
		tx := begin(t, db, dbtx.Options{})
		s := tx.DB()

		b := Basket{Buyer: &Buyer{Name: "b"}, Lines: []Line{{Amount: 1}, {Amount: 2}}, Tags: []Tag{{Name: "t"}}}
		wantNil(t, s.Create(&b).Error)
		wantNil(t, s.Model(&b).Association("Lines").Append(&Line{Amount: 3}))
		wantNil(t, s.Model(&b).Association("Tags").Replace(&Tag{Name: "u"}))

		var got Basket
		wantNil(t, s.Preload("Lines").Preload("Tags").Joins("Buyer").Take(&got, b.ID).Error)
		if len(got.Lines) != 3 || len(got.Tags) != 1 || got.Buyer == nil || got.Lines[0].Version != 1 {
			t.Errorf("basket is %+v, want 3 lines, 1 tag and its buyer", got)
		}
		got.Lines[0].Amount = 9
		wantNil(t, s.Save(&got.Lines[0]).Error)
		wantNil(t, s.Save(&got).Error) // saves its associations, too

		seen := 0
		wantNil(t, s.Model(&Line{}).FindInBatches(&[]Line{}, 2, func(tx *gorm.DB, _ int) error {
			seen += int(tx.RowsAffected)
			return tx.Create(&Tag{Name: "batch"}).Error
		}).Error)
		wantNil(t, s.CreateInBatches([]Line{{BasketID: b.ID}, {BasketID: b.ID}, {BasketID: b.ID}}, 2).Error)
		var amounts []int
		wantNil(t, s.Model(&Line{}).Order("id").Pluck("amount", &amounts).Error)
		var sum int
		wantNil(t, s.Debug().Model(&Line{}).Select("SUM(amount)").Scan(&sum).Error)
		if seen != 3 || len(amounts) != 6 || sum != 14 {
			t.Errorf("saw %d lines of %v with the sum %d, want 3 of 6 and 14", seen, amounts, sum)
		}
		wantNil(t, s.Transaction(func(tx *gorm.DB) error { return tx.Delete(&Line{}, got.Lines[1].ID).Error }))
		wantNil(t, s.FirstOrCreate(&Tag{}, Tag{Name: "t"}).Error)
		wantNil(t, s.Where(Tag{Name: "x"}).Assign(Tag{Name: "y"}).FirstOrCreate(&Tag{}).Error)

		tx.Rollback()
		for _, model := range []any{&Basket{}, &Buyer{}, &Line{}, &Tag{}} {
			if n := count(t, db, model); n != 0 {
				t.Errorf("%d rows of %T are left", n, model)
			}
		}
	})
}

// TestRowsWithoutModel: gorm writes maps to a table of which it knows no model, and
// it is not known which rows these are.
func TestRowsWithoutModel(t *testing.T) {
	row := func(no string) map[string]any { return map[string]any{"no": no} }
	each(t, func(t *testing.T, db *gorm.DB) {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		one, several := row("a"), []map[string]any{row("b"), row("c")}
		wantNil(t, tx.DB().Table("orders").Create(one).Error)
		wantNil(t, tx.DB().Table("orders").Create(&several).Error)
		generic := row("d")
		wantNil(t, gorm.G[map[string]any](tx.DB()).Table("orders").Create(bg, &generic))
		if c := tx.Coverage(); c.Covered || !slices.Equal(c.Uncovered, []string{"orders"}) {
			t.Errorf("coverage is %+v, want none of the orders", c)
		}

		err := tx.DB().Transaction(func(tx *gorm.DB) error { return tx.Create(&Order{No: "a"}).Error })
		wantIs(t, err, gorm.ErrDuplicatedKey)
		if c := tx.Conflict(); !business(c) {
			t.Errorf("evidence is %+v, want that of an own write", c.Evidence)
		}
		wantNil(t, tx.Commit())
	})
}
