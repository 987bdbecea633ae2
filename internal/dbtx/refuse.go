package dbtx

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// refusedRow makes a *sql.Row that has nothing but an error: that of a database
// which can't be connected to.
func refusedRow(ctx context.Context, err error) *sql.Row {
	db := sql.OpenDB(refusal{err})
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(ctx, "")
}

type refusal struct{ err error }

func (r refusal) Connect(context.Context) (driver.Conn, error) { return nil, r.err }
func (r refusal) Driver() driver.Driver                        { return nil }
