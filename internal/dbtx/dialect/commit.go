package dialect

import (
	"database/sql/driver"
	"errors"
	"slices"
)

// NotCommitted reports whether the error of a COMMIT proves that nothing was
// committed: the server said so, or the statement was not sent.
func NotCommitted(err error) bool {
	code := postgresCode(err)
	return errors.Is(err, driver.ErrBadConn) || refusedCommit(mysqlNumber(err)) ||
		code != "" && !slices.Contains(pgUnsure, code[:2]) ||
		sqliteCode(err) != 0 && sqliteCode(err)&0xff != 10 // IOERR
}

// refusedCommit reports whether an error of MySQL or MariaDB undoes a COMMIT. Most
// don't tell: to a session that is killed during its COMMIT the server says so in
// place of "done", too.
func refusedCommit(number uint16) bool {
	switch number {
	case erLockDeadlock, erLockWaitTimeout, erCheckRead, erReadOnlyServer, erReadOnlyTx, erReadOnlyMode, erRolledBack:
		return true
	}
	return false
}

// pgUnsure are the classes of errors after which PostgreSQL may find the commit in its
// log all the same: connection, resources, operator, system and internal.
var pgUnsure = []string{"08", "53", "57", "58", "XX"}
