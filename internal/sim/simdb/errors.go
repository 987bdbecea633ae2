package simdb

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// normal has a text without the spaces that do not count.
var normal sync.Map

// question returns how a statement is answered that asks about the server; nil if it
// does not.
func (db *Database) question(sql string) answer {
	type key struct {
		postgres bool
		sql      string
	}
	if found, ok := normal.Load(key{db.postgres(), sql}); ok {
		return found.(answer)
	}
	answers := myAnswers
	if db.postgres() {
		answers = pgAnswers
	}
	text := strings.Join(strings.Fields(sql), " ")
	var found answer
	longest := 0
	for begin, a := range answers {
		if strings.HasPrefix(text, begin) && len(begin) > longest {
			found, longest = a, len(begin)
		}
	}
	normal.Store(key{db.postgres(), sql}, found)
	return found
}

// writes reports whether a statement is an INSERT, UPDATE or DELETE.
func writes(sql string) bool {
	st, err := parseOnce(sql)
	return err == nil && (st.kind == "INSERT" || st.kind == "UPDATE" || st.kind == "DELETE")
}

func (db *Database) duplicate(i *index, values []any) error {
	var key []string
	for _, v := range i.keyOf(values) {
		key = append(key, fmt.Sprint(v))
	}
	if !db.postgres() {
		name := i.name
		if i.primary() {
			name = "PRIMARY"
		}
		return myErr(erDuplicate, strings.Join(key, "-"), name)
	}
	return &pgconn.PgError{
		Severity: "ERROR", Code: "23505", SchemaName: "public", TableName: i.table.name, ConstraintName: i.name,
		Message: fmt.Sprintf("duplicate key value violates unique constraint %q", i.name),
	}
}

// lockedError is what a statement with NOWAIT gets.
func (db *Database) lockedError(err error) error {
	switch {
	case !errors.Is(err, errLocked):
		return err
	case db.postgres():
		return pgErr("55P03", "could not obtain lock on row in relation")
	}
	return myErr(erLockTimeout)
}

func (db *Database) noTable(name string) error {
	if db.postgres() {
		return pgErr("42P01", fmt.Sprintf("relation %q does not exist", name))
	}
	return myErr(erNoTable, name)
}

func (db *Database) isNull(column string) error {
	if db.postgres() {
		return pgErr("23502", fmt.Sprintf("null value in column %q violates not-null constraint", column))
	}
	return myErr(erIsNull, column)
}

func (db *Database) noSavepoint(name string, t *tx) error {
	switch {
	case !db.postgres():
		return myErr(erNoSavepoint, name)
	case t == nil:
		return pgErr("25P01", "savepoints can only be used in transaction blocks")
	}
	t.fail()
	return pgErr("3B001", fmt.Sprintf("savepoint %q does not exist", name))
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

func (db *Database) commitError() error {
	if db.postgres() {
		return pgErr(db.knobs.CommitError, "commit failed")
	}
	n, _ := strconv.ParseUint(db.knobs.CommitError, 10, 16)
	return &mysql.MySQLError{Number: uint16(n), Message: "commit failed"}
}
