package dialect

import (
	"context"
	"errors"
	"net"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/sqlerr"
)

// FromServer reports whether the database itself gave the error.
func FromServer(err error) bool { return sqlerr.FromServer(err) }

// Unreachable reports whether no connection to the database could be made, or it broke,
// or the server takes none or no writes for now: it may answer later.
func Unreachable(err error) bool {
	_, failed := errors.AsType[*net.OpError](err)
	return failed || sqlerr.IsBroken(err) || errors.Is(err, errNoWriter) || sqlerr.IsMySQL(err, erConCount, erUnknownCommand, erServerShutdown, erConnectionKilled, erReadOnlyServer, erOffline, erOfflineWhy) ||
		sqlerr.IsPostgres(err, pgConnection, "57P", pgConnections)
}

// IsDuplicate reports that a unique index has refused a row.
func IsDuplicate(err error) bool {
	return sqlerr.IsMySQL(err, erDupEntry, erDupEntryWithKey, erDupUnknownInIdx) || sqlerr.IsPostgres(err, pgUnique) ||
		sqlerr.IsSQLite(err, sqliteConstraintPK, sqliteConstraintUQ) || errors.Is(err, gorm.ErrDuplicatedKey)
}

// IsChanged reports the refusal of a row that changed since the snapshot.
func IsChanged(err error) bool {
	return sqlerr.IsMySQL(err, erCheckRead) || sqlerr.IsPostgres(err, pgSerialization) || sqlerr.IsSQLite(err, sqliteBusySnapshot)
}

// IsDeadlock reports that the server has rolled the transaction back in favour
// of another.
func IsDeadlock(err error) bool {
	return sqlerr.IsMySQL(err, erLockDeadlock) || sqlerr.IsPostgres(err, pgDeadlock)
}

// IsLocked reports that a NOWAIT read met a lock.
func IsLocked(err error) bool {
	return sqlerr.IsMySQL(err, erLockNowait, erLockWaitTimeout) || sqlerr.IsPostgres(err, pgLocked)
}

// IsSyntax reports that an old server does not know what it was sent.
func IsSyntax(err error) bool { return sqlerr.IsMySQL(err, erParse) }

// IsMissing reports that the server does not know what it was asked about, or does not show
// it to this user. It will not the next time either.
func IsMissing(err error) bool {
	return sqlerr.IsMySQL(err, erParse, erSchemaDenied, erUnknownColumn, erUnknownTable, erTableDenied, erColumnDenied, erNoSuchTable) ||
		sqlerr.IsPostgres(err, pgUndefined, pgUnsupported)
}

// Retryable reports whether err says that the database has rolled a transaction
// back, or refused to begin it, because another one was in the way: a deadlock,
// a failed serialization or certification, a busy SQLite, a migration of the table. The
// same transaction may succeed when it is run again.
func Retryable(err error) bool {
	return IsDeadlock(err) || IsChanged(err) || sqlerr.IsMySQL(err, erTableDefChanged, erRolledBack) || isAbortedAtCommit(err) || isUndone(err) || sqlerr.IsSQLite(err, sqliteBusy, sqliteLocked)
}

// Poisons reports whether err leaves a transaction that must not go on: the
// server has rolled it back, its connection is gone, or a statement was cut
// short, so that nobody knows what it did. A hook's error may be of another
// database, and says nothing.
func (d Dialect) Poisons(err error) bool {
	return d.Name == "mysql" && sqlerr.IsMySQL(err, erLockDeadlock, erLockTableFull, erCheckRead, erTableDefChanged) ||
		d.Name == "postgres" && sqlerr.IsPostgres(err, pgSerialization, pgDeadlock, pgOperator, pgConnection) ||
		d.Name == "sqlite" && sqlerr.IsSQLite(err, sqliteRollsBack...) ||
		sqlerr.IsBroken(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
