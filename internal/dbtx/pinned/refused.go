package pinned

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// RefusedRow returns a *sql.Row that has only an error: that of a database which cannot
// be reached.
func RefusedRow(ctx context.Context, err error) *sql.Row {
	db := sql.OpenDB(refusal{err})
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(ctx, "")
}

type refusal struct{ err error }

func (r refusal) Connect(context.Context) (driver.Conn, error) { return nil, r.err }

func (r refusal) Driver() driver.Driver { return nil }
