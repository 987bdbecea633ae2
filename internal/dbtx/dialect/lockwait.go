package dialect

import (
	"fmt"
	"strconv"
	"time"
)

// A LockWait makes the server bound a statement's wait for another transaction's lock. A
// context does not: MySQL and MariaDB wait on for a client that has disconnected, and then
// execute the statement.
type LockWait struct {
	Prefix  string // put before the statement's text
	Before  string // sent before the statement, "" = nothing
	Restore string // sent after the statement, unless the transaction is to be rolled back anyway
	During  string // what Before sets, as SetLockWait does
	After   string // what Restore sets
}

// SetLockWait sets a bound on PostgreSQL, as [LockWait] has it. It is one text for all of them: a driver
// prepares it once.
const SetLockWait = "SELECT set_config('lock_timeout', $1, true)"

// LockWait returns how to wait for d at most, in a session. MySQL and MariaDB count in
// seconds. MariaDB does not wait at all for d below 1 s, MySQL waits for 1 s. PostgreSQL
// waits for 100 ms at least: its setting bounds the waits for locks of the table, too.
func (d Dialect) LockWait(s Session, wait time.Duration) LockWait {
	seconds := int64(max(0, wait) / time.Second)
	switch {
	case d.Name == "mysql" && s.Family == MariaDB:
		return LockWait{Prefix: fmt.Sprintf("SET STATEMENT innodb_lock_wait_timeout=%d FOR", seconds)}
	case d.Name == "mysql" && s.LockWait != "":
		return LockWait{
			Before:  fmt.Sprintf("SET innodb_lock_wait_timeout = %d", max(1, seconds)),
			Restore: "SET innodb_lock_wait_timeout = " + s.LockWait,
		}
	case d.Name == "postgres" && s.LockWait != "":
		during := strconv.FormatInt(max(100, wait.Milliseconds()), 10)
		return LockWait{
			Before:  "SET LOCAL lock_timeout = " + during,
			Restore: fmt.Sprintf("SET LOCAL lock_timeout = '%s'", s.LockWait),
			During:  during,
			After:   s.LockWait,
		}
	}
	return LockWait{} // no other writer can begin on SQLite
}
