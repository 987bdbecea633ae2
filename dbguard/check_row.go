package dbguard

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/tablerow"
)

// checkRow returns the fault of the table of a row that is named by its table.
func checkRow(db *gorm.DB, row *tablerow.Row) []doctor.Finding {
	subject := fmt.Sprintf("Row of table %s", row.Table)
	if row.Err != nil {
		return []doctor.Finding{doctor.DBModel.Failed(subject, row.Err).Fixed("name a table, and columns with values")}
	}
	indexes, err := catalogueOf(db).Indexes(db.Statement.Context, row.Table)
	switch {
	case err != nil:
		return []doctor.Finding{doctor.DBModel.Failed(subject, err).Fixed("let the service read the catalogue of the database")}
	case catalogue.IsUnique(indexes, row.Columns):
		return nil
	}
	return []doctor.Finding{doctor.DBModel.Found(subject, "no unique index has just the columns %s%s",
		catalogue.Listing(row.Columns), catalogue.Unusable(indexes)).Fixed("add a unique index of these columns, NOT NULL")}
}
