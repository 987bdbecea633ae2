package catalogue_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestFactsAreReadAgain: that a catalogue could not be read once, as in a failover, says
// nothing of the table.
func TestFactsAreReadAgain(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.Postgres(t)+"&lock_timeout=50")
	testdb.WantNil(t, db.Exec("CREATE TABLE plain (id INT PRIMARY KEY)").Error)
	tables := catalogue.Tables{Known: new(catalogue.Cache), Open: func() (*gorm.DB, func()) {
		return db.WithContext(context.Background()), func() {}
	}}
	testdb.WantNil(t, db.Transaction(func(tx *gorm.DB) error {
		err := tx.Exec("LOCK TABLE pg_constraint IN ACCESS EXCLUSIVE MODE").Error
		if f := tables.Facts("plain"); !f.Triggers {
			t.Errorf("facts that could not be read are %+v", f)
		}
		return err
	}))
	if f := tables.Facts("plain"); f != (catalogue.Facts{Transactional: true}) {
		t.Errorf("facts are %+v", f)
	}
}
