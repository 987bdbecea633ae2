// Package dbtx runs the guarded transaction: inside a GORM transaction the database
// itself refuses the second writer, and what it refused is judged exactly.
//
// An insert relies on a unique index, an update on a column of type [dbguard.Version].
// Package guard drives the transaction:
//
//	tx, err := dbtx.Begin(ctx, db, dbtx.Options{Key: "order:7"})
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback()
//	if err := tx.Protect(&Order{No: "7"}); err != nil {
//		return err
//	}
//	if err := tx.DB().Create(&Order{No: "7"}).Error; err != nil {
//		return err
//	}
//	return tx.Commit()
//
// # The guarded transaction
//
// [Begin] pins one connection and starts the transaction on it, after the lock
// has been taken. On MySQL and MariaDB it does so WITH CONSISTENT SNAPSHOT, at no
// extra round trip. A plain read then shows the rows as they were when this caller
// had the lock. On SQLite it uses BEGIN IMMEDIATE, which lets no other writer in. The
// number and the settings of a connection are read once in its life.
//
// Every statement is refused once the lease has ended. A statement after which
// the transaction can't be trusted poisons it: no further statement is sent, and it
// can only be rolled back. Such are a deadlock, a lost connection, a statement that was
// cut short, and a conflict that proves another writer. After a deadlock MySQL has
// rolled back by itself, and the next statement would commit alone.
//
// The end runs on a context of its own, because the caller's may have ended. A
// connection whose end was not acknowledged is discarded, never pooled. An error
// that undoes the COMMIT, such as a deadlock or that of a read-only server, means that
// nothing was committed. After any other error, or no answer, the outcome is unknown:
// [ErrCommitUnknown].
//
// Statements that end or commit a transaction (COMMIT, DDL, SET autocommit ...)
// are refused. So are statements that carry the context of a guarded transaction but
// run outside it. Rows that a caller has not closed keep the transaction from being
// committed, [pinned.ErrRowsOpen]. Blind spots: what a stored procedure or a prepared EXECUTE
// does, and an error that comes only when rows are closed before their end.
//
// # Protected rows
//
// A key protects the rows that are named by [Tx.Protect], [Tx.ProtectNew] and
// [Tx.ProtectPrimary].
//
// A table is known by its name with its schema. The database knows the schema of a name
// without one. A row that is named by a model is protected in every table to which
// a statement with that model goes, as by Table("orders_2026").
//
// A row with NULL in the columns of its index can't be protected: there may be
// any number of them. Times are looked for as their columns keep them, in a DATE
// as days.
//
// # Conflicts
//
// A plain INSERT that the database refuses as a duplicate becomes a [*dbguard.ConflictError]. So does
// a versioned UPDATE or DELETE that matches fewer rows than it was given. A conflict is
// judged by the protected rows that the statement may have met.
//
// The database identifies these rows. Go decides only that a row with equal values is the
// statement's and that one with another integer is not. Otherwise a query decides,
// which compares as the columns do.
//
// A protected row proves another writer if it has changed since this operation saw
// it first. [Memory] keeps the first protected.Reading, for all attempts of the operation, unless
// the transaction may have written the row by then. At a conflict the row is read
// plainly, which shows the snapshot, and once more as it is committed now, without
// waiting. Where no snapshot can be read after a conflict, the row is read when it becomes
// protected. That is so on PostgreSQL, on MySQL at another level than REPEATABLE READ, and
// on MariaDB with innodb_snapshot_isolation.
//
// Some conflicts remain open until [Tx.Rollback], which reads the rows anew right
// after the ROLLBACK, while the caller still has the lock. All writes of the
// transaction are gone then, by whatever trigger, upsert or function. So it
// is if the transaction may have written the row, if the row is locked, and on PostgreSQL
// after any error. An error that says only that some row has changed, as a failed
// serialization does, becomes a conflict if a protected row is found changed.
//
// A row may be there although no read finds it: a trigger has altered it, a number was
// rounded, or row-level security hides it. If the error names the index that protects
// all rows of the insert, [dbguard.Evidence].Unread says so. MySQL and MariaDB name the index
// only in the text of their errors.
//
// A row whose texts are spelled in another way is not the statement's, even if a
// collation takes the two for the same: its writer had another key. [dbguard.Evidence].Shared
// says that another key may protect the row, too.
//
// An insert that the server ends with a deadlock is followed by one read. A row that is
// missing then, and in the way of the next attempt, was written under this caller's lock.
//
// Blind spots are a row that was written
//   - between the grant of the lock and the snapshot, or the first protected.Reading without one;
//   - by the winner of a deadlock, which committed before the read that follows;
//   - after this transaction may have written it, without an earlier reading;
//   - by a delete and an insert with the same primary key and version.
//
// # The end
//
// [Tx.Coverage] reports whether the database would refuse a second such transaction by
// itself. After [ErrCommitUnknown], [Tx.Resolve] ends the old session and looks for a
// proof of the outcome, on the server that had the transaction. PostgreSQL knows the
// outcome; on MySQL and MariaDB a column of type [dbguard.Stamp] proves it.
package dbtx
