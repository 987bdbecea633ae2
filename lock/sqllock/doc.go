// Package sqllock keeps locks in a table of a database, for services that have no Redis.
//
//	pool, err := sql.Open("pgx", dsn) // for locks alone
//	if err != nil {
//		return err
//	}
//	defer pool.Close()
//	pool.SetMaxOpenConns(4)
//	pool.SetMaxIdleConns(4)
//	if err := sqllock.Migrate(ctx, pool, sqllock.Postgres); err != nil {
//		return err
//	}
//	engine, err := sqllock.New(pool, sqllock.Postgres, sqllock.Config{})
//	if err != nil {
//		return err
//	}
//	defer engine.Close(ctx)
//	locker, err := lock.New(engine, lock.Config{})
//
// It works on MySQL, MariaDB, PostgreSQL and SQLite. A lock is a row of belay_lock: name,
// owner, token, and expiry. Only the database's clock counts. Each call is one statement in
// one transaction: no transaction is open while a lock is held. An acquire of a lock that
// another owner has takes a second statement, which reads the owner. So does an acquire that
// asks for markers.
//
// Servers that only resemble these, such as CockroachDB or TiDB, may have a clock on each node: a
// lock then ends early or late by the difference.
//
// # A pool of its own
//
// Give the engine a pool that nothing else uses. Guarded transactions that wait for each
// other's rows can take all connections of a shared pool, and renewals that wait for one
// lose the locks. Four connections are enough for a process; they also bound the load of
// locks on the database. Keep as many idle as open.
//
// # Settings
//
// In the DSN of MySQL and MariaDB, set interpolateParams=true: it saves two of three
// requests for a statement. Set transaction_isolation='READ-COMMITTED' on MySQL, or
// tx_isolation on MariaDB, so that no gaps between rows are locked. Locks also exclude each
// other without these two settings. Autocommit must be on, which is the default of servers and
// drivers: a call on a connection without it fails with [lockengine.ErrDenied].
//
// On PostgreSQL, set default_transaction_isolation to read committed in the DSN if the server
// has another default. Locks exclude each other at each level. At the other levels, though, a
// call fails with [lockengine.ErrNotSent] instead of waiting for another call on the same key. All
// processes must use the same table belay_lock: with another search_path, or another database,
// they do not exclude each other. On SQLite, set a busy_timeout.
//
// A lock is as durable as a commit. Leave innodb_flush_log_at_trx_commit = 1 and
// sync_binlog = 1 on MySQL and MariaDB, synchronous_commit = on, fsync = on for PostgreSQL,
// and synchronous = FULL on SQLite. With less, a crash may lose the last grants.
//
// # Drivers
//
// The engine is tested with github.com/go-sql-driver/mysql, github.com/jackc/pgx/v5/stdlib,
// modernc.org/sqlite and github.com/mattn/go-sqlite3. A wrapper around one of them must let
// its errors be unwrapped. If the engine does not know an error of another driver, the error of
// the call matches [lockengine.ErrNoAnswer], and a lock that may have been acquired is released. A
// driver must return driver.ErrBadConn only for a statement that it has not sent, as
// database/sql demands. github.com/lib/pq has returned it for others as well: do not use it here.
//
// # Waiting
//
// While callers of this process wait for locks, one statement at a time looks for all of
// their keys, every 50 to 250 milliseconds; see [Config]. A lock that this engine releases
// wakes them at once. Without waiters there are no such statements.
//
// # Rows
//
// A release empties the row's owner and leaves the row, so that tokens grow. Each engine
// deletes rows ten minutes after their lock has ended, about once a minute. The table has
// as many rows as different keys were locked in that time.
//
// # When the database fails
//
// A commit that the database confirmed survives its crash, and so does the lock. If the
// database is away for longer than the lease, the lock is lost, and its holder knows. A
// failover to a replica that lacks the last commits loses those locks, as it loses the
// transactions beside them. Send the engine to the primary: on Galera and group replication,
// all processes to the same node, or calls fail with [lockengine.ErrNotSent] because they conflict at
// commit. The engine closes a connection whose server has become read-only. The next call then
// opens a new one, which reaches the new primary if the address in the DSN does.
//
// If the database's clock is set forward, locks end early. If it is set back, the lock of a
// process that died stays for that much longer; others are not affected.
//
// # Errors
//
// An error matches [lockengine.ErrNotSent] if there was no connection, or the database reports
// that it rolled the statement back: a deadlock, a busy SQLite, a server that is read-only.
// A user, a right or a table that is missing matches [lockengine.ErrDenied], a full disk
// [lockengine.ErrRefused], and a key of more than 512 bytes [lockengine.ErrUnusable]. If the connection
// breaks, or ctx ends, before the answer, the error matches [lockengine.ErrNoAnswer].
package sqllock
