package dialect

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

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

// IsDuplicate reports that a unique index has refused a row, or an EXCLUDE of PostgreSQL.
func IsDuplicate(err error) bool {
	return sqlerr.IsMySQL(err, erDupEntry, erDupEntryWithKey, erDupUnknownInIdx) || sqlerr.IsPostgres(err, pgUnique, pgExclusion) ||
		sqlerr.IsSQLite(err, sqliteConstraintPK, sqliteConstraintUQ)
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

// IsConstraint reports that SQLite has refused a row. It may have ended the transaction, too:
// ON CONFLICT ROLLBACK and RAISE(ROLLBACK) do.
func IsConstraint(err error) bool { return sqlerr.IsSQLite(err, sqliteConstraint) }

// IsNoSavepoint reports that a transaction has no savepoint of a name.
func IsNoSavepoint(err error) bool { return sqlerr.IsMySQL(err, erNoSavepoint) }

// IsOutside reports that PostgreSQL was sent a statement that it takes only inside of a transaction.
func IsOutside(err error) bool { return sqlerr.IsPostgres(err, pgOutside) }

// IsSyntax reports that an old server cannot parse a statement.
func IsSyntax(err error) bool { return sqlerr.IsMySQL(err, erParse) }

// IsMissing reports that the server does not know the queried object, or does not show it
// to this user. A retry would fail, too.
func IsMissing(err error) bool {
	return sqlerr.IsMySQL(err, erParse, erSchemaDenied, erUnknownColumn, erUnknownTable, erTableDenied, erColumnDenied, erNoSuchTable) ||
		sqlerr.IsPostgres(err, pgUndefined, pgUnsupported)
}

// IsAltered reports that a table, or a column or index of one, is not as the program or the
// server knew it.
func IsAltered(err error) bool {
	return sqlerr.IsMySQL(err, erTableDefChanged, erUnknownColumn, erNoSuchTable) ||
		sqlerr.IsPostgres(err, pgUndefinedColumn, pgUndefinedTable, pgUndefinedObject, pgUnsupported)
}

// Retryable reports whether err shows that the database has rolled a transaction back,
// or refused to begin it, because of another one: a deadlock, a failed serialization or
// certification, a busy SQLite, a migration of the table. A retry of the transaction
// may succeed.
func Retryable(err error) bool {
	return IsDeadlock(err) || IsChanged(err) || sqlerr.IsMySQL(err, erTableDefChanged, erRolledBack) || isAbortedAtCommit(err) || isUndone(err) || tidbRolledBack(err) || sqlerr.IsSQLite(err, sqliteBusy, sqliteLocked)
}

// Transient reports whether a retry of the transaction may succeed a moment later: the database
// could not be reached, takes no connections or no writes for now, or another transaction was
// in the way.
func Transient(err error) bool {
	return Unreachable(err) || sqlerr.IsReadOnly(err) || IsLocked(err) || Retryable(err)
}

// Poisons reports whether the transaction must not continue after err: the server has
// rolled it back, its connection is lost, or a statement was interrupted, so that its
// effect is unknown. A hook's error may be of another database, and does not count.
func (d Dialect) Poisons(err error) bool {
	return d.Name == "mysql" && sqlerr.IsMySQL(err, erLockDeadlock, erLockTableFull, erCheckRead, erTableDefChanged) ||
		d.Name == "postgres" && sqlerr.IsPostgres(err, pgSerialization, pgDeadlock, pgIncomplete, pgOperator, pgConnection) ||
		d.Name == "sqlite" && sqlerr.IsSQLite(err, sqliteRollsBack...) ||
		Swaps(err) && FromServer(err) || sqlerr.IsBroken(err) || ended(err)
}

// Swaps reports whether a connection may have another session after err, without the transaction.
// A driver that wraps another one fails over under a connection that stays open, and reports that
// by an error of its own; a proxy reports a lost server by an error of clients.
func Swaps(err error) bool {
	switch {
	case err == nil, ended(err):
		return false
	case FromServer(err):
		if sqlerr.Signaled(err) { // by a program of the database, which gives any number
			return false
		}
		n := sqlerr.MySQL(err)
		return n >= firstOfClients && n <= lastOfClients || n >= firstOfProxySQL && n <= lastOfProxySQL ||
			sqlerr.IsPostgres(err, pgConnection)
	}
	return !refusesArguments(err)
}

// refusals begin the errors by which database/sql and pgx refuse arguments, before they send
// anything. There are no sentinels for that.
var refusals = []string{
	"sql: converting ", "sql: expected ", "failed to encode args[", "mismatched param and argument count", "expected ",
	"extended protocol limited to ", "unable to encode ", "insufficient arguments", "unused argument: ", "not enough args to execute query",
	"mysql: driver does not support the use of Named Parameters", "convert field ", // of an answer
}

func refusesArguments(err error) bool {
	return errors.Is(err, mysql.ErrPktTooLarge) || slices.ContainsFunc(refusals, func(r string) bool { return strings.HasPrefix(err.Error(), r) })
}

func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
