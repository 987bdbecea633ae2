package testdb_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
)

func TestEveryDatabaseIsEmptyAndTakesASecondPool(t *testing.T) {
	type Thing struct{ ID int }
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		if db.Migrator().HasTable(&Thing{}) {
			t.Error("the database is not empty")
		}
		if err := db.AutoMigrate(&Thing{}); err != nil {
			t.Fatal(err)
		}
		if err := db.Create(&Thing{ID: 1}).Error; err != nil {
			t.Fatal(err)
		}
		var n int64
		if err := open().Model(&Thing{}).Count(&n).Error; err != nil || n != 1 {
			t.Errorf("the other pool sees %d rows, error %v, want 1", n, err)
		}
	})
}
