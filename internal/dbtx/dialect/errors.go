package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// FromServer reports whether the database itself gave the error.
func FromServer(err error) bool {
	return mysqlNumber(err) != 0 || sqliteCode(err) != 0 || postgresCode(err) != ""
}

// Unreachable reports whether no connection to the database could be made, or it broke,
// or the server takes none or no writes for now: it may answer later.
func Unreachable(err error) bool {
	_, failed := errors.AsType[*net.OpError](err)
	return failed || isBroken(err) || errors.Is(err, errNoWriter) || isMySQL(err, erConCount, erUnknownCommand, erServerShutdown, erConnectionKilled, erReadOnlyServer) ||
		isPostgres(err, pgConnection, "57P", pgConnections)
}

// isBroken reports whether err is a driver's for a connection that broke.
func isBroken(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// IsDuplicate reports that a unique index has refused a row.
func IsDuplicate(err error) bool {
	return isMySQL(err, erDupEntry, erDupEntryWithKey, erDupUnknownInIdx) || isPostgres(err, pgUnique) ||
		isSQLite(err, sqliteConstraintPK, sqliteConstraintUQ) || errors.Is(err, gorm.ErrDuplicatedKey)
}

// IsChanged reports the refusal of a row that changed since the snapshot.
func IsChanged(err error) bool {
	return isMySQL(err, erCheckRead) || isPostgres(err, pgSerialization) || isSQLite(err, sqliteBusySnapshot)
}

// IsDeadlock reports that the server has rolled the transaction back in favour
// of another.
func IsDeadlock(err error) bool {
	return isMySQL(err, erLockDeadlock) || isPostgres(err, pgDeadlock)
}

// IsLocked reports that a NOWAIT read met a lock.
func IsLocked(err error) bool {
	return isMySQL(err, erLockNowait, erLockWaitTimeout) || isPostgres(err, pgLocked)
}

// IsSyntax reports that an old server does not know what it was sent.
func IsSyntax(err error) bool { return isMySQL(err, erParse) }

// IsMissing reports that the server does not know what it was asked about, or does not show
// it to this user. It will not the next time either.
func IsMissing(err error) bool {
	return isMySQL(err, erParse, erSchemaDenied, erUnknownColumn, erUnknownTable, erTableDenied, erColumnDenied, erNoSuchTable) ||
		isPostgres(err, pgUndefined, pgUnsupported)
}

// Retryable reports whether err says that the database has rolled a transaction
// back, or refused to begin it, because another one was in the way: a deadlock,
// a failed serialization or certification, a busy SQLite, a migration of the table. The
// same transaction may succeed when it is run again.
func Retryable(err error) bool {
	return IsDeadlock(err) || IsChanged(err) || isMySQL(err, erTableDefChanged, erRolledBack) || isAbortedAtCommit(err) || isUndone(err) || isSQLite(err, sqliteBusy, sqliteLocked)
}

// Poisons reports whether err leaves a transaction that must not go on: the
// server has rolled it back, its connection is gone, or a statement was cut
// short, so that nobody knows what it did. A hook's error may be of another
// database, and says nothing.
func (d Dialect) Poisons(err error) bool {
	return d.Name == "mysql" && isMySQL(err, erLockDeadlock, erLockTableFull, erCheckRead, erTableDefChanged) ||
		d.Name == "postgres" && isPostgres(err, pgSerialization, pgDeadlock, pgOperator, pgConnection) ||
		d.Name == "sqlite" && isSQLite(err, sqliteRollsBack...) ||
		isBroken(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
