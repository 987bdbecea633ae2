package catalogue

import (
	"context"
	"database/sql"
)

// Has reports whether a database has a table. It reports false if that can't be read. db is a
// *gorm.DB.
func Has(ctx context.Context, db interface {
	Name() string
	DB() (*sql.DB, error)
}, table string) bool {
	pool, err := db.DB()
	if err != nil {
		return false
	}
	columns, err := Source{Dialect: db.Name(), Conn: pool}.Columns(ctx, table)
	return err == nil && len(columns) > 0
}
