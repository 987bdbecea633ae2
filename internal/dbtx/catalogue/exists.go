package catalogue

import (
	"context"

	"gorm.io/gorm"
)

// Has reports whether a database has a table. It reports false if that can't be read.
func Has(ctx context.Context, db *gorm.DB, table string) bool {
	pool, err := db.DB()
	if err != nil {
		return false
	}
	columns, err := Source{Dialect: db.Name(), Conn: pool}.Columns(ctx, table)
	return err == nil && len(columns) > 0
}
