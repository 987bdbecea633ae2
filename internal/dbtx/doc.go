// Package dbtx runs the guarded transaction: a GORM transaction in which the database
// itself refuses the second writer, and the evidence for each refusal is collected.
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
// [Begin] pins one connection and starts the transaction on it, after the lock has been
// acquired. On MySQL and MariaDB the transaction starts WITH CONSISTENT SNAPSHOT, at no
// extra round trip. A plain read then shows the rows as they were when this caller had
// the lock. On SQLite it starts with BEGIN IMMEDIATE, which lets no other writer in. The
// settings of a connection are read once in its life, on MySQL and MariaDB once a minute.
// On Galera, which may undo a transaction silently, it runs without autocommit: later
// statements are then in another transaction, which is rolled back. A savepoint before the
// first write shows it.
//
// Every statement is refused once the lease has ended. A statement after which the
// transaction cannot be trusted poisons it: no further statement is sent, and the
// transaction can only be rolled back. Deadlocks, lost connections, interrupted
// statements, and conflicts that prove another writer do so. At a deadlock MySQL rolls
// back the transaction, and the next statement would commit alone.
//
// The end runs on a separate context, because the caller's may have ended. A connection
// whose end was not acknowledged is discarded, never pooled. An error that undoes the
// COMMIT, such as a deadlock or that of a read-only server, means that nothing was
// committed. After any other error, or no answer, the outcome is unknown:
// [ErrCommitUnknown]. [Tx.Resolve] then looks for a proof.
//
// Statements that end or commit a transaction (COMMIT, DDL, SET autocommit ...)
// are refused. So are statements that carry the context of a guarded transaction but
// run outside it. A transaction is not committed while rows are open:
// [pinned.ErrRowsOpen]. On MySQL and MariaDB a procedure or a prepared statement can end the
// transaction without a trace in its text. A savepoint is set before such a statement, and
// no longer exists afterwards if the transaction has ended: see [Tx.Unseen].
//
// # Protected rows
//
// [Tx.Protect], [Tx.ProtectNew] and [Tx.ProtectPrimary] name the rows that the key
// protects.
//
// A table is identified by its name with its schema. The database knows the schema of a
// name without one. A row that is named by a model is protected in every table to which
// a statement with that model goes, as by Table("orders_2026").
//
// A unique index of the table names a row, as the database has it. The primary key of the
// model does not unless the table has an index on it. The indexes are read again for
// transactions that begin a minute later, or after an error that shows an altered table.
//
// A row with NULL in the columns of its index cannot be protected: there may be any
// number of them. Times are compared as their columns store them, in a DATE as days.
//
// # Conflicts
//
// A plain INSERT that the database refuses as a duplicate becomes a
// [*dbguard.ConflictError]. So does a versioned UPDATE or DELETE that matches fewer rows
// than it was given. Only protected rows that the statement may have met are evidence
// for a conflict.
//
// The database identifies these rows. Go decides only that a row with equal values is the
// statement's and that one with another integer is not. Otherwise a query decides,
// which compares as the columns do.
//
// A protected row proves another writer if it has changed since this operation first saw
// it. [Memory] keeps the first reading, for all attempts of the operation, unless
// the transaction may have written the row by then. At a conflict the row is read
// plainly, which shows the snapshot, and once more as it is committed now, without
// waiting. Where no snapshot can be read after a conflict, the row is read when it becomes
// protected. That is so on PostgreSQL, on MySQL at another level than REPEATABLE READ, and
// on MariaDB with innodb_snapshot_isolation.
//
// Some conflicts remain open until [Tx.Rollback], which reads the rows again right
// after the ROLLBACK, while the caller still has the lock. By then all writes of the
// transaction are undone, including those of triggers and functions. A conflict remains
// open if the transaction may have written the row, if the row is locked, and on PostgreSQL
// after any error. An error that reports only that some row has changed, as a failed
// serialization does, becomes a conflict if a protected row has changed. If the connection
// breaks at a conflict, the rows are read on another one to the same server. They can be
// compared with the operation's earlier reads, but the snapshot is lost.
//
// A row may be there although no read finds it: a trigger has altered it, a number was
// rounded, or row-level security hides it. If the error names the index that protects
// all rows of the insert, [dbguard.Evidence].Unread is set. MySQL and MariaDB name the
// index only in the text of their errors.
//
// A row whose texts are spelled differently is not the statement's, even if they are
// equal by a collation: its writer had another key. Where another key may protect the
// row, too, [dbguard.Evidence].Shared is set.
//
// An insert that the server ends with a deadlock is followed by one read. A row that is
// missing at this read, and refuses the next attempt, was written under this caller's
// lock.
//
// docs/guarantees.md lists the blind spots.
package dbtx
