package dialect

import (
	"database/sql/driver"
	"errors"

	"github.com/belaygo/belay/internal/sqlerr"
)

// notCommitted is [Family.NotCommitted] of MySQL, MariaDB, PostgreSQL and SQLite. Most errors of
// MySQL and MariaDB do not prove it: a session that is killed during its COMMIT gets one in place of
// "done", too, and a member of a group that leaves it gives up on a commit that the others
// may have in their order.
func notCommitted(err error) bool {
	return errors.Is(err, driver.ErrBadConn) ||
		sqlerr.IsMySQL(err, erLockDeadlock, erLockWaitTimeout, erCheckRead, erReadOnlyServer, erReadOnlyTx, erReadOnlyMode) ||
		isAbortedAtCommit(err) ||
		sqlerr.Postgres(err) != "" && !sqlerr.IsPostgres(err, pgUnsure...) ||
		sqlerr.SQLite(err) != 0 && !sqlerr.IsSQLite(err, sqliteIO)
}

// pgUnsure are errors, and classes of them, after which PostgreSQL may still find the
// commit in its log, or with which a server like PostgreSQL reports an unknown outcome.
var pgUnsure = []string{pgConnection, pgIncomplete, pgResources, pgOperator, pgTimeout, pgSystem, pgInternal}
