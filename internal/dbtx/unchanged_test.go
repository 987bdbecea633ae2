package dbtx_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
)

type Author struct {
	ID        uint
	Name      string `gorm:"size:64;uniqueIndex"`
	Age       int    `gorm:"default:7"`
	CreatedAt time.Time
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt
	Books     []Book
	Profile   *Profile
	Genres    []Genre `gorm:"many2many:author_genres"`
}

type Book struct {
	ID       uint
	AuthorID uint
	Title    string `gorm:"size:64"`
	Price    int
}

type Profile struct {
	ID       uint
	AuthorID uint
	Text     string `gorm:"size:64"`
}

type Genre struct {
	ID   uint
	Name string `gorm:"size:64"`
}

func (b *Book) BeforeCreate(tx *gorm.DB) error {
	tx.Statement.SetColumn("Price", b.Price+1)
	return nil
}

func (b *Book) AfterUpdate(tx *gorm.DB) error {
	return tx.Model(&Profile{}).Where("author_id = ?", b.AuthorID).Update("text", "touched").Error
}

// sqlLog keeps the SQL that gorm sends, and what came of it.
type sqlLog struct {
	logger.Interface
	lines []string
}

func (l *sqlLog) LogMode(logger.LogLevel) logger.Interface { return l }

func (l *sqlLog) Trace(_ context.Context, _ time.Time, f func() (string, int64), err error) {
	sql, rows := f()
	l.lines = append(l.lines, random.ReplaceAllString(fmt.Sprintf("%s [%d rows, %v]", sql, rows, err), "$1"))
}

// random are the names of savepoints and of the test's database.
var random = regexp.MustCompile(`\b(sp|belay_)[0-9a-z]{8,}`)

// TestGormIsUnchanged runs gorm's features with dbguard and without it: the SQL,
// the rows and the errors are the same.
func TestGormIsUnchanged(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]gorm.Config{
		"default":   {},
		"translate": {TranslateError: true},
		"bare":      {SkipDefaultTransaction: true, PrepareStmt: true},
		"save all":  {FullSaveAssociations: true, QueryFields: true},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(install bool) map[string][]string {
				lines := make(map[string][]string)
				testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
					config.NowFunc = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
					own := config
					db := open(&own)
					if install {
						wantNil(t, dbtx.Install(db))
					}
					wantNil(t, db.AutoMigrate(&Author{}, &Book{}, &Profile{}, &Genre{}))
					log := &sqlLog{Interface: logger.Discard}
					for i, f := range features {
						err := f(db.Session(&gorm.Session{Logger: log}))
						log.lines = append(log.lines, random.ReplaceAllString(fmt.Sprintf("feature %d: %v", i, err), "$1"))
					}
					lines[db.Name()+"/"+server(t, db)] = log.lines
				})
				return lines
			}
			without, with := run(false), run(true)
			for server, want := range without {
				got := with[server]
				if len(want) < 2*len(features) {
					t.Errorf("%s: only %d lines", server, len(want))
				}
				for i := range max(len(got), len(want)) {
					if i >= len(got) || i >= len(want) || got[i] != want[i] {
						t.Fatalf("%s: statement %d is\n%v\nwithout dbguard\n%v", server, i, got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
					}
				}
			}
		})
	}
}

func server(t *testing.T, db *gorm.DB) (version string) {
	t.Helper()
	if db.Name() != "sqlite" {
		wantNil(t, db.Raw("SELECT version()").Scan(&version).Error)
	}
	return version
}

var features = []func(db *gorm.DB) error{
	func(db *gorm.DB) error {
		return db.Create(&Author{ID: 1, Name: "a", Books: []Book{{Title: "x"}, {Title: "y"}}, Profile: &Profile{Text: "p"}, Genres: []Genre{{Name: "g"}}}).Error
	},
	func(db *gorm.DB) error { return db.Create(&Author{Name: "a"}).Error }, // a duplicate
	func(db *gorm.DB) error { return db.Create(&[]Author{{ID: 2, Name: "b"}, {ID: 3, Name: "c"}}).Error },
	func(db *gorm.DB) error {
		return db.CreateInBatches([]Book{{AuthorID: 2}, {AuthorID: 2}, {AuthorID: 3}}, 2).Error
	},
	func(db *gorm.DB) error { return db.Model(&Genre{}).Create(map[string]any{"Name": "map"}).Error },
	func(db *gorm.DB) error { return db.Select("Name").Create(&Author{ID: 90, Name: "d", Age: 3}).Error },
	func(db *gorm.DB) error {
		return db.Omit("Age", clause.Associations).Create(&Author{ID: 91, Name: "e", Age: 3}).Error
	},
	func(db *gorm.DB) error {
		return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Author{ID: 1, Name: "a"}).Error
	},
	func(db *gorm.DB) error {
		return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"age"})}).Create(&Author{ID: 1, Name: "a", Age: 9}).Error
	},
	func(db *gorm.DB) error {
		return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, UpdateAll: true}).Create(&Genre{ID: 1, Name: "all"}).Error
	},
	func(db *gorm.DB) error {
		var a Author
		if err := db.Preload("Books").Preload("Genres").Joins("Profile").Take(&a, 1).Error; err != nil {
			return err
		}
		a.Age = 10
		a.Books[0].Title = "z"
		return db.Save(&a).Error
	},
	func(db *gorm.DB) error { return db.Save(&Genre{ID: 77, Name: "upsert"}).Error },
	func(db *gorm.DB) error { return db.Save(&[]Genre{{ID: 78, Name: "s"}, {ID: 77, Name: "t"}}).Error },
	func(db *gorm.DB) error { return db.Model(&Author{ID: 1}).Update("age", 11).Error },
	func(db *gorm.DB) error { return db.Model(&Author{ID: 1}).Updates(Author{Age: 12, Name: "n"}).Error },
	func(db *gorm.DB) error {
		return db.Model(&Author{}).Where("age > ?", 1).Updates(map[string]any{"age": 13}).Error
	},
	func(db *gorm.DB) error {
		return db.Model(&Author{ID: 1}).UpdateColumn("age", gorm.Expr("age + ?", 1)).Error
	},
	func(db *gorm.DB) error {
		return db.Model(&Author{ID: 1}).Select("Age", "Name").Updates(Author{Name: "m"}).Error
	},
	func(db *gorm.DB) error { return db.Model(&Book{ID: 1, AuthorID: 1}).Update("price", 3).Error },
	func(db *gorm.DB) error { return db.Model(&Author{}).Update("age", 1).Error }, // without a condition
	func(db *gorm.DB) error { return db.Model(&[]Book{{ID: 1}, {ID: 2}}).Update("price", 4).Error },
	func(db *gorm.DB) error {
		return db.Where(Author{Name: "new"}).Attrs(Author{Age: 1}).FirstOrCreate(&Author{}).Error
	},
	func(db *gorm.DB) error {
		return db.Where(Genre{Name: "g"}).Assign(Genre{Name: "h"}).FirstOrCreate(&Genre{}).Error
	},
	func(db *gorm.DB) error { return db.Where("name = ?", "nobody").First(&Author{}).Error },
	func(db *gorm.DB) error {
		return db.Model(&Author{ID: 1}).Association("Books").Append(&Book{Title: "w"})
	},
	func(db *gorm.DB) error {
		return db.Model(&Author{ID: 1}).Association("Genres").Replace(&Genre{Name: "r"})
	},
	func(db *gorm.DB) error { return db.Model(&Author{ID: 1}).Association("Genres").Clear() },
	func(db *gorm.DB) error { return db.Delete(&Author{ID: 2}).Error }, // softly
	func(db *gorm.DB) error { return db.Unscoped().Delete(&Author{ID: 2}).Error },
	func(db *gorm.DB) error { return db.Select("Books").Delete(&Author{ID: 3}).Error },
	func(db *gorm.DB) error { return db.Delete(&Book{}, []int{1, 2}).Error },
	func(db *gorm.DB) error { return db.Delete(&Book{}).Error }, // without a condition
	func(db *gorm.DB) error {
		return db.Clauses(clause.Returning{}).Where("id = ?", 3).Delete(&[]Book{}).Error
	},
	func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			_ = tx.Transaction(func(tx *gorm.DB) error { return errors.Join(tx.Create(&Genre{Name: "in"}).Error, errUndo) })
			return tx.Clauses(clause.Locking{Strength: "UPDATE"}).Order("id").Find(&[]Genre{}).Error
		})
	},
	func(db *gorm.DB) error {
		tx := db.Begin()
		defer tx.Rollback()
		return tx.SavePoint("s").Create(&Genre{Name: "b"}).RollbackTo("s").Error
	},
	func(db *gorm.DB) error {
		return db.Session(&gorm.Session{DryRun: true, PrepareStmt: true}).Create(&Genre{Name: "dry"}).Error
	},
	func(db *gorm.DB) error { return db.Exec("UPDATE books SET price = ? WHERE id = ?", 5, 3).Error },
	func(db *gorm.DB) error { var n int; return db.Raw("SELECT COUNT(*) FROM books").Scan(&n).Error },
	func(db *gorm.DB) error { var n int; return db.Raw("SELECT COUNT(*) FROM books").Row().Scan(&n) },
	func(db *gorm.DB) error {
		rows, err := db.Model(&Book{}).Order("id").Rows()
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := db.ScanRows(rows, &Book{}); err != nil {
				return err
			}
		}
		return rows.Err()
	},
	func(db *gorm.DB) error {
		return db.Model(&Book{}).Select("author_id, SUM(price) AS price").Group("author_id").Having("SUM(price) > ?", 0).Order("author_id").Find(&[]Book{}).Error
	},
	func(db *gorm.DB) error {
		var names []string
		return db.Model(&Author{}).Order("id").Pluck("name", &names).Error
	},
	func(db *gorm.DB) error {
		return db.Order("id").FindInBatches(&[]Book{}, 2, func(tx *gorm.DB, _ int) error { return tx.Create(&Genre{Name: "batch"}).Error }).Error
	},
	func(db *gorm.DB) error {
		return db.Where("id IN (?)", db.Model(&Book{}).Select("author_id")).Scopes(func(tx *gorm.DB) *gorm.DB { return tx.Limit(1) }).Find(&[]Author{}).Error
	},
	func(db *gorm.DB) error {
		if err := gorm.G[Genre](db).Create(bg, &Genre{Name: "generic"}); err != nil {
			return err
		}
		if _, err := gorm.G[Genre](db).Where("name = ?", "generic").Update(bg, "name", "g2"); err != nil {
			return err
		}
		if _, err := gorm.G[Genre](db).Where("name = ?", "g2").Find(bg); err != nil {
			return err
		}
		_, err := gorm.G[Genre](db).Where("name = ?", "g2").Delete(bg)
		return err
	},
}
