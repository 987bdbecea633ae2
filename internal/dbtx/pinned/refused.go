package pinned

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// RefusedRow makes a *sql.Row that has nothing but an error: that of a database
// which can't be connected to.
func RefusedRow(ctx context.Context, err error) *sql.Row {
	db := sql.OpenDB(refusal{err})
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(ctx, "")
}

type refusal struct{ err error }

func (r refusal) Connect(context.Context) (driver.Conn, error) { return nil, r.err }

func (r refusal) Driver() driver.Driver { return nil }
