package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// FromServer reports whether the database itself gave the error.
func FromServer(err error) bool {
	return mysqlNumber(err) != 0 || sqliteCode(err) != 0 || postgresCode(err) != ""
}

// Unreachable reports whether no connection to the database could be made, or it broke,
// or the server takes none for now: it may answer later.
func Unreachable(err error) bool {
	switch mysqlNumber(err) {
	case erConCount, erServerShutdown, erConnectionKilled:
		return true
	}
	switch code := postgresCode(err); {
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), code == pgConnections:
		return true
	}
	_, failed := errors.AsType[*net.OpError](err)
	return failed || isBroken(err)
}

// isBroken reports whether err is a driver's for a connection that broke.
func isBroken(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// IsDuplicate reports that a unique index has refused a row.
func IsDuplicate(err error) bool {
	switch mysqlNumber(err) {
	case erDupEntry, erDupEntryWithKey, erDupUnknownInIdx:
		return true
	}
	switch sqliteCode(err) {
	case sqliteConstraintPK, sqliteConstraintUQ:
		return true
	}
	return postgresCode(err) == pgUnique || errors.Is(err, gorm.ErrDuplicatedKey)
}

// IsChanged reports the refusal of a row that changed since the snapshot.
func IsChanged(err error) bool {
	return mysqlNumber(err) == erCheckRead || postgresCode(err) == pgSerialization || sqliteCode(err) == sqliteBusySnapshot
}

// IsDeadlock reports that the server has rolled the transaction back in favour
// of another.
func IsDeadlock(err error) bool {
	return mysqlNumber(err) == erLockDeadlock || postgresCode(err) == pgDeadlock
}

// IsLocked reports that a NOWAIT read met a lock.
func IsLocked(err error) bool {
	n := mysqlNumber(err)
	return n == erLockNowait || n == erLockWaitTimeout || postgresCode(err) == pgLocked
}

// IsSyntax reports that an old server does not know what it was sent.
func IsSyntax(err error) bool { return mysqlNumber(err) == erParse }

// IsAborted reports that PostgreSQL takes no statement after an earlier error.
func IsAborted(err error) bool { return postgresCode(err) == pgAborted }

// Retryable reports whether err says that the database has rolled a transaction
// back, or refused to begin it, because another one was in the way: a deadlock,
// a failed serialization, a busy SQLite, a migration of the table. The same
// transaction may succeed when it is run again.
func Retryable(err error) bool {
	switch sqliteCode(err) & 0xff {
	case 5, 6: // BUSY, LOCKED
		return true
	}
	return IsDeadlock(err) || IsChanged(err) || mysqlNumber(err) == erTableDefChanged
}

// Poisons reports whether err leaves a transaction that must not go on: the
// server has rolled it back, its connection is gone, or a statement was cut
// short, so that nobody knows what it did. A hook's error may be of another
// database, and says nothing.
func (d Dialect) Poisons(err error) bool {
	switch d.Name {
	case "mysql":
		switch mysqlNumber(err) {
		case erLockDeadlock, erLockTableFull, erCheckRead, erTableDefChanged:
			return true
		}
	case "postgres":
		switch code := postgresCode(err); {
		case code == pgSerialization, code == pgDeadlock:
			return true
		case code != "" && (code[:2] == "57" || code[:2] == "08"): // shut down, cancelled, connection
			return true
		}
	case "sqlite":
		switch sqliteCode(err) & 0xff {
		case 7, 9, 10, 11, 13: // NOMEM, INTERRUPT, IOERR, CORRUPT, FULL may roll back by themselves
			return true
		}
	}
	return isBroken(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
