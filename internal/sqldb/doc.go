// Package sqldb runs the statements that Belay sends outside of a business transaction: those
// of the outbox, of the purger, and of checks.
//
//	d, ok := sqldb.Of(gormDB.Name())
//	db := sqldb.New(pool, d)
//	res, err := db.Exec(ctx, "DELETE FROM belay_outbox WHERE id = ?", id)
//	err = db.InTx(ctx, func(c sqldb.Conn) error { ... })
//
// A Dialect spells the statements: parameters are ? and quotes are " for all databases.
//
// The pool is the program's, and so are its sessions. On MySQL and MariaDB one may have
// autocommit off, or an open transaction that somebody has left behind (a SELECT begins one
// without autocommit, and a COMMIT does with completion_type = CHAIN). A statement alone would
// join that transaction: nobody would commit it, and a read would see an old snapshot. So a read is
// in a transaction there, and what writes is between two ends of transactions, before its
// connection goes back to the pool. On PostgreSQL and SQLite no setting of a session turns
// autocommit off, and a statement is a transaction of its own.
//
// A process that is paused in a transaction keeps what it has locked for as long as its session
// lasts, which on MySQL is for hours. What others wait for is therefore written by one statement.
package sqldb
