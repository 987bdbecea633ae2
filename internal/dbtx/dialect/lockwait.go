package dialect

import (
	"fmt"
	"time"
)

// A LockWait has the server bound how long a statement waits for another transaction's
// lock. A context would not do that: MySQL and MariaDB wait on for a client that has gone,
// and execute the statement then.
type LockWait struct {
	Prefix  string // goes before the statement
	Before  string // is sent before it, "" = nothing
	Restore string // is sent after it, unless the transaction is to be rolled back anyway
}

// LockWait returns how to wait for d at most, in a session. MySQL and MariaDB count in
// seconds. MariaDB does not wait at all for d below 1 s, MySQL waits for 1 s. PostgreSQL
// waits for 100 ms at least: its setting bounds the waits for locks of the table, too.
func (d Dialect) LockWait(s Session, wait time.Duration) LockWait {
	seconds := int64(max(0, wait) / time.Second)
	switch {
	case d.Name == "mysql" && s.MariaDB:
		return LockWait{Prefix: fmt.Sprintf("SET STATEMENT innodb_lock_wait_timeout=%d FOR", seconds)}
	case d.Name == "mysql" && s.LockWait != "":
		return LockWait{
			Before:  fmt.Sprintf("SET innodb_lock_wait_timeout = %d", max(1, seconds)),
			Restore: "SET innodb_lock_wait_timeout = " + s.LockWait,
		}
	case d.Name == "postgres" && s.LockWait != "":
		return LockWait{
			Before:  fmt.Sprintf("SET LOCAL lock_timeout = %d", max(100, wait.Milliseconds())),
			Restore: fmt.Sprintf("SET LOCAL lock_timeout = '%s'", s.LockWait),
		}
	}
	return LockWait{} // SQLite lets no other writer begin
}
