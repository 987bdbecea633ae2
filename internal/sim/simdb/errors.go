package simdb

import (
	"fmt"
	"io"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// duplicate is the error of an INSERT that meets the record of another row, or would.
func (db *Database) duplicate(r *record) error {
	if !db.postgres() {
		return myErr(erDuplicate, r.key, r.index.name)
	}
	return &pgconn.PgError{
		Severity: "ERROR", Code: "23505", SchemaName: "public", TableName: r.index.table.name, ConstraintName: r.index.name,
		Message: fmt.Sprintf("duplicate key value violates unique constraint %q", r.index.name),
	}
}

// killedError is what a client reads whose session was killed; nil if that is nothing but
// the end.
func (db *Database) killedError() error {
	if db.postgres() {
		return pgErr("57P01", "terminating connection due to administrator command")
	}
	return nil
}

// brokenError is what a driver returns when the answer does not come.
func (db *Database) brokenError() error {
	if db.postgres() {
		return fmt.Errorf("failed to receive message: %w", io.ErrUnexpectedEOF)
	}
	return mysql.ErrInvalidConn
}

// commitError is what a COMMIT with the fate Refuse or RefuseAfter gets.
func (db *Database) commitError() error {
	if db.postgres() {
		return pgErr("40001", "commit failed")
	}
	return &mysql.MySQLError{Number: erDeadlock, Message: "commit failed"}
}
