package dialect

import (
	"fmt"
	"time"
)

// A LockWait makes the server bound a statement's wait for another transaction's lock. A
// context does not: MySQL and MariaDB wait on for a client that has disconnected, and then
// execute the statement.
type LockWait struct {
	Prefix  string        // put before the statement's text
	During  string        // the value of a setting while the statement waits, "" = it has none: see Set
	After   string        // its value behind the statement, unless the transaction is to be rolled back anyway
	Longest time.Duration // the wait, where the statement is sent with others
	setting string        // a statement that sets it
}

// Set returns the statement that gives the setting a value.
func (w LockWait) Set(value string) string { return fmt.Sprintf(w.setting, value) }

// SetLockWait gives PostgreSQL's setting the value of its argument. It is one text for all values: a driver
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
		return LockWait{During: fmt.Sprint(max(1, seconds)), After: s.LockWait, setting: "SET innodb_lock_wait_timeout = %s"}
	case d.Name == "postgres" && s.LockWait != "":
		wait = max(100*time.Millisecond, wait)
		return LockWait{During: fmt.Sprint(wait.Milliseconds()), After: s.LockWait, Longest: wait, setting: "SET LOCAL lock_timeout = '%s'"}
	}
	return LockWait{} // no other writer can begin on SQLite
}
