// Package simdb is a simulated database server for tests: a driver of database/sql with
// rows, versions and locks in memory, which answers as MariaDB 10.11 or PostgreSQL 15 does.
//
//	sdb := simdb.New(simdb.MariaDB, simdb.Knobs{})
//	sdb.Exec("CREATE TABLE orders (id BIGINT AUTO_INCREMENT, no VARCHAR(64) NOT NULL, PRIMARY KEY (id), UNIQUE KEY orders_no (no))")
//	pool := sql.OpenDB(sdb.Connector("process 1", gate))
//	db, err := gorm.Open(mysql.New(mysql.Config{Conn: pool}))
//
// Each call that would go over the network passes the [Gate] first, which decides when it
// runs and what becomes of it. A database knows the statements that Belay and gorm send. Any
// other one is reported to Knobs.Unknown: an answer that was guessed would prove nothing.
//
// # One statement at a time
//
// A statement runs on a goroutine of its own, which stands for the server's: it goes on when
// its client has gone. Only one runs at a time, the one that has the baton. A statement that
// has to wait passes the baton on. Those that it wakes at its end run next, in the order of
// their locks. So a run depends on nothing but the gate. Waits are receives from channels,
// and time is that of package time, so a testing/synctest bubble sees them as blocked.
//
// # InnoDB
//
// Each index has records in order, and each record a queue of locks: on the record, on the
// gap before it, or on both. An insert locks its records implicitly. Whoever meets them makes
// that lock explicit. A duplicate leaves a shared lock. A record that a rollback removes
// passes its locks on to the gap. Deleted records stay, marked. A deadlock is found at the
// request that closes it, along the one transaction that each waits for; the victim is the
// one with the fewest rows and lock structures, which are counted as InnoDB counts them.
//
// # PostgreSQL
//
// A row has holders and a queue. Whoever waits for a row waits for the end of one
// transaction, or for the one that is before it in the queue. An insert waits for whoever
// writes its key. A deadlock is found by the transaction that has waited for
// deadlock_timeout and is in a circle then: it is the victim. After an error a
// transaction gives back what it has locked since its last savepoint.
//
// # Bounded waits
//
// A wait for a lock ends after 50 s on MariaDB, and never on PostgreSQL, unless the session
// says otherwise: SET STATEMENT innodb_lock_wait_timeout=N FOR, where 0 does not wait at all,
// SET innodb_lock_wait_timeout, and SET LOCAL lock_timeout.
//
// # How far it is the real thing
//
// TestAsRealServers runs random schedules on the simulation and on real servers, which must
// give equal rows, errors and waits. It asks the servers which sessions wait. Where a
// server wakes several sessions at once, or finds a deadlock by a timer, any of the orders
// that the simulation can have may be the server's. TestAsRealDrivers compares what a
// program gets when its session is killed or its context ends. They leave out:
//
//   - The purge of deleted records. A snapshot keeps the real server from it.
//   - Sessions that one rollback of InnoDB wakes, if there are several: they run before it is
//     done.
//   - Which of two transactions of a deadlock is InnoDB's victim if their weights differ by no
//     more than one structure.
//   - The planner. Rows are found by the primary key, else by a unique key of which all
//     columns are given, and are locked in the order of the primary key. On tables of a few
//     rows a real server may read them all instead. A locking read of a whole table
//     is unknown above READ COMMITTED.
//   - Collations: texts compare by their bytes.
//   - SERIALIZABLE, foreign keys, triggers, updates of a key, keys of several columns, prepared
//     statements; an INSERT with the primary key of a deleted row where there is another key.
//     All of them are unknown. An index that is not unique is known and does nothing: no
//     statement locks rows by it.
//   - Errors of a disk, of a full table, of a deadlock with a lock on a table.
package simdb
