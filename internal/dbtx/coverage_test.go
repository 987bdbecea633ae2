package dbtx_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
)

var errUndo = errors.New("undo")

// Hooked has hooks that refuse everything.
type Hooked struct {
	ID   uint
	Text string `gorm:"size:64"`
}

func (*Hooked) BeforeCreate(*gorm.DB) error { return errUndo }
func (*Hooked) BeforeUpdate(*gorm.DB) error { return errUndo }
func (*Hooked) BeforeDelete(*gorm.DB) error { return errUndo }

func TestCoverage(t *testing.T) {
	create := func(tx *gorm.DB) error { return tx.Create(&Order{No: "a"}).Error }
	update := func(tx *gorm.DB) error {
		var s Stock
		if err := tx.Take(&s, 1).Error; err != nil {
			return err
		}
		return tx.Model(&s).Update("left", s.Left-1).Error
	}
	both := func(fs ...func(*gorm.DB) error) func(*gorm.DB) error {
		return func(tx *gorm.DB) error {
			for _, f := range fs {
				if err := f(tx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	undone := func(f func(*gorm.DB) error) func(*gorm.DB) error {
		return func(tx *gorm.DB) error {
			err := tx.Transaction(func(tx *gorm.DB) error { return errors.Join(f(tx), errUndo) })
			if errors.Is(err, errUndo) {
				return nil
			}
			return err
		}
	}
	nested := func(f func(*gorm.DB) error) func(*gorm.DB) error {
		return func(tx *gorm.DB) error { return tx.Transaction(f) }
	}
	raw := func(sql string) func(*gorm.DB) error {
		return func(tx *gorm.DB) error { return tx.Exec(strings.ReplaceAll(sql, "`left`", left(tx))).Error }
	}
	refused := func(f func(*gorm.DB) error) func(*gorm.DB) error {
		return func(tx *gorm.DB) error {
			if f(tx) == nil {
				return errors.New("it was not refused")
			}
			return nil
		}
	}
	blind := func(tx *gorm.DB) error {
		return tx.Model(&Stock{}).Where("id = ? AND "+left(tx)+" > 0", 1).Update("left", gorm.Expr(left(tx)+" - 1")).Error
	}
	spelling := map[string][]string{ // what not every database can read
		"raw with a schema":                    {"sqlite"},
		"raw, who knows where":                 {"sqlite", "postgres"},
		"raw, behind many words":               {"sqlite"},
		"insert ignore":                        {"sqlite", "mysql"},
		"an insert whose answer can't be read": {"sqlite"},
	}
	cases := []struct {
		name      string
		write     func(*gorm.DB) error
		wrote     bool
		covered   bool
		uncovered []string
	}{
		{"nothing", func(*gorm.DB) error { return nil }, false, false, nil},
		{"a read", func(tx *gorm.DB) error { return tx.Find(&[]Order{}).Error }, false, false, nil},
		{"an insert", create, true, true, nil},
		{"an insert of another row", func(tx *gorm.DB) error { return tx.Create(&Order{No: "z"}).Error }, true, false, nil},
		{"a versioned update", update, true, true, nil},
		{"both", both(create, update), true, true, nil},
		{"a versioned delete", func(tx *gorm.DB) error { return tx.Delete(&Stock{ID: 1, Version: 1}).Error }, true, true, nil},
		{"generics", func(tx *gorm.DB) error { return gorm.G[Order](tx).Create(bg, &Order{No: "a"}) }, true, true, nil},
		{"a refused insert", func(tx *gorm.DB) error { _ = tx.Create(&Order{No: "there"}).Error; return nil }, false, false, nil},
		{"an insert, and one that its hook refuses", both(create, refused(func(tx *gorm.DB) error { return tx.Create(&Hooked{}).Error })), true, true, nil},
		{"an insert, and an update that its hook refuses", both(create, refused(func(tx *gorm.DB) error { return tx.Model(&Hooked{ID: 1}).Update("text", "a").Error })), true, true, nil},
		{"a condition, and a delete that its hook refuses", both(blind, refused(func(tx *gorm.DB) error { return tx.Delete(&Hooked{ID: 1}).Error })), true, false, []string{"stocks"}},
		{"an insert whose answer can't be read", refused(func(tx *gorm.DB) error {
			return tx.Model(&Order{}).Create([]map[string]any{{"no": "a"}}).Error
		}), true, false, []string{"orders"}},
		{"a generic update", func(tx *gorm.DB) error {
			_, err := gorm.G[Stock](tx).Where("id = 1").Updates(bg, Stock{ID: 1, Left: 3, Version: 1})
			return err
		}, true, true, nil},
		{"a generic update of no version", func(tx *gorm.DB) error {
			_, err := gorm.G[Stock](tx).Where("id = 1").Update(bg, "left", 3)
			return err
		}, true, false, []string{"stocks"}},
		{"in batches", func(tx *gorm.DB) error { return tx.CreateInBatches([]Order{{No: "x"}, {No: "y"}, {No: "a"}}, 2).Error }, true, true, nil},
		{"a map", func(tx *gorm.DB) error { return tx.Model(&Order{}).Create(map[string]any{"no": "a"}).Error }, true, true, nil},
		{"an upsert", func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&Order{No: "a"}).Error
		}, true, false, []string{"orders"}},
		{"insert ignore", func(tx *gorm.DB) error {
			modifier := "IGNORE"
			if tx.Name() == "sqlite" {
				modifier = "OR IGNORE"
			}
			return tx.Clauses(clause.Insert{Modifier: modifier}).Create(&Order{No: "a"}).Error
		}, true, false, []string{"orders"}},
		{"a condition", blind, true, false, []string{"stocks"}},
		{"a condition that matched nothing", func(tx *gorm.DB) error {
			return tx.Model(&Stock{}).Where("id = 99").Update("left", 1).Error
		}, false, false, nil},
		{"an insert and a condition", both(create, blind), true, false, []string{"stocks"}},
		{"a condition and the version", both(update, blind), true, true, []string{"stocks"}},
		{"no version loaded", func(tx *gorm.DB) error { return tx.Model(&Stock{ID: 1}).Update("left", 1).Error }, true, false, []string{"stocks"}},
		{"raw", raw("UPDATE stocks SET `left` = 1 WHERE id = 1"), true, false, []string{"stocks"}},
		{"raw elsewhere", both(create, raw("INSERT INTO /* a `comment` */ logs (text) VALUES ('x; UPDATE stocks')")), true, true, []string{"logs"}},
		{"raw with a schema", both(create, raw("DELETE FROM main.stocks WHERE id = 2")), true, false, []string{"main.stocks"}},
		{"raw, who knows where", both(create, raw("WITH x AS (SELECT 2 AS id) DELETE FROM stocks WHERE id IN (SELECT id FROM x)")), true, false, []string{"?"}},
		{"raw, behind many words", both(create, raw("WITH x AS (SELECT "+strings.Repeat("1 + ", 10)+"2 AS id WHERE 1"+strings.Repeat(" AND NOT NULL IS NOT NULL", 20)+" OR 1 = 1) DELETE FROM stocks WHERE id IN (SELECT id FROM x)")), true, false, []string{"?"}},
		{"own raw write before the versioned one", both(raw("UPDATE stocks SET `left` = 1 WHERE id = 1"), update), true, true, []string{"stocks"}},
		{"undone", undone(create), false, false, nil},
		{"the covering one undone", both(blind, undone(create)), true, false, []string{"stocks"}},
		{"the other one undone", both(create, undone(blind)), true, true, nil},
		{"nested", nested(create), true, true, nil},
		{"nested twice, the inner one undone", nested(both(create, undone(blind))), true, true, nil},
		{"nested twice, the outer one undone", both(undone(nested(create)), blind), true, false, []string{"stocks"}},
		{"an unheard-of savepoint", both(create, raw("SAVEPOINT a"), raw("ROLLBACK TO a")), true, true, nil},
	}
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Hooked{}))
		wantNil(t, db.Exec("CREATE TABLE logs (text varchar(100))").Error)
		wantNil(t, db.Create(&[]Stock{{ID: 1, Left: 5}, {ID: 2}}).Error)
		wantNil(t, db.Create(&Order{No: "there"}).Error)
		for _, tt := range cases {
			if only := spelling[tt.name]; only != nil && !slices.Contains(only, db.Name()) {
				continue
			}
			t.Run(tt.name, func(t *testing.T) {
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(&Order{No: "a"}))
				wantNil(t, tx.Protect(&Order{No: "there"}))
				wantNil(t, tx.Protect(&Stock{ID: 1}))
				wantNil(t, tt.write(tx.DB()))
				c := tx.Coverage()
				if c.Wrote != tt.wrote || c.Covered != tt.covered || !slices.Equal(c.Uncovered, tt.uncovered) {
					t.Errorf("coverage is %+v, want wrote %v, covered %v, uncovered %v", c, tt.wrote, tt.covered, tt.uncovered)
				}
			})
		}
	})
}

// TestKeyThatIsNone: where the table does not keep rows apart by what the model takes
// for its primary key, a compare may match several.
func TestKeyThatIsNone(t *testing.T) {
	type Leaf struct {
		ID      int64
		Text    string
		Version dbguard.Version
	}
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Exec("CREATE TABLE leafs (id int, text varchar(10), version bigint)").Error)
		wantNil(t, db.Exec("INSERT INTO leafs (id, text, version) VALUES (1, 'a', 1), (1, 'b', 1)").Error)
		tx := begin(t, db, dbtx.Options{})
		wantIs(t, tx.ProtectPrimary(&Leaf{ID: 1}), dbguard.ErrUnprotectable)
		wantIs(t, tx.DB().Model(&Leaf{ID: 1, Version: 1}).Update("text", "c").Error, dbguard.ErrUnprotectable)
		if c := tx.Coverage(); c.Covered || !c.Wrote {
			t.Errorf("coverage is %+v, want none", c)
		}
		wantIs(t, tx.Commit(), dbguard.ErrUnprotectable)
	})
}

// TestAssociationsCoverNothing: gorm saves them by upserts.
func TestAssociationsCoverNothing(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Buyer{}, &Basket{}, &Line{}, &Tag{}))
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Basket{ID: 1}))
		wantNil(t, tx.Protect(&Line{ID: 1}))
		wantNil(t, tx.DB().Create(&Basket{ID: 1, Lines: []Line{{ID: 1}}}).Error)
		if c := tx.Coverage(); c.Covered || !slices.Equal(c.Uncovered, []string{"lines"}) {
			t.Errorf("coverage is %+v, want none of the lines", c)
		}
	})
}

// TestUndoneInMemory: a savepoint's rollback takes back what the rows in memory
// had become since.
func TestUndoneInMemory(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		s := stock(t, db, 1)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Model(&s).Update("left", 4).Error)
		err := tx.DB().Transaction(func(tx *gorm.DB) error {
			wantNil(t, tx.Model(&s).Update("left", 3).Error)
			return errUndo
		})
		wantIs(t, err, errUndo)
		if s.Version != 2 {
			t.Errorf("version in memory is %d, want 2", s.Version)
		}
		wantNil(t, tx.DB().Model(&s).Update("left", 2).Error)
		wantNil(t, tx.Commit())
		if got := stock(t, db, 1); got.Left != 2 || got.Version != 3 || s.Version != 3 {
			t.Errorf("row is %+v, in memory %+v", got, s)
		}
	})
}
