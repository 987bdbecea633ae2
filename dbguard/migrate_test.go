package dbguard_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/testdb"
)

// Parcel has both kinds of columns that dbguard fills.
type Parcel struct {
	ID      int64
	Left    int
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// TestMigrateAgain: each start of a service migrates its tables. Rows that another program
// inserts have a version all the same.
func TestMigrateAgain(t *testing.T) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		for range 3 {
			db := open()
			wantNil(t, dbguard.Install(db))
			wantNil(t, db.AutoMigrate(&Parcel{}))
			wantNil(t, dbguard.Check(t.Context(), db, &Parcel{}))
		}
		db := open()
		wantNil(t, dbguard.Install(db))
		db.Logger = logger.Discard
		wantNil(t, db.Exec("INSERT INTO parcels (id) VALUES (1)").Error)
		wantNil(t, db.Create(&Parcel{ID: 2}).Error)
		var all []Parcel
		wantNil(t, db.Order("id").Find(&all).Error)
		if all[0].Version != 1 || all[0].Stamp != 0 || all[1].Version != 1 || all[1].Stamp == 0 {
			t.Errorf("rows are %+v", all)
		}
	})
}
