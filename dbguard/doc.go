// Package dbguard is the second layer: inside a GORM transaction the database
// itself refuses the second writer, and what it refused is judged exactly.
//
// An insert relies on a unique index, an update on a column of type [Version].
// Package guard drives a guarded transaction; most programs need nothing of
// this package but [Version] and, to look into an error, [Conflict].
//
// # The guarded transaction
//
// [Begin] pins one connection and starts the transaction on it, after the lock
// has been taken: on MySQL and MariaDB WITH CONSISTENT SNAPSHOT, at no extra
// round trip, so that a plain read shows the rows as they were when this caller
// had the lock; on SQLite with BEGIN IMMEDIATE, which lets no other writer in.
// Where there is no such snapshot, on PostgreSQL and on MySQL at another level
// than REPEATABLE READ, a row is read when it becomes protected. A connection is
// asked once in its life for its number and settings.
//
// Every statement first asks whether the lease lives. A statement after which
// the transaction can't be trusted (a deadlock, a lost connection, a statement
// that was cut short, a conflict that proves another writer) poisons it: no
// further statement is sent, and it can only be rolled back. After a deadlock
// MySQL has rolled back by itself, and the next statement would commit alone.
//
// The end runs on a context of its own, because the caller's may be what has
// just ended. A connection whose end was not acknowledged is discarded, never
// pooled. An error that undoes the COMMIT (a deadlock, a server that is read-only)
// means that nothing was committed; any other, and silence, mean that nobody
// knows, [ErrCommitUnknown].
//
// Statements that end or commit a transaction (COMMIT, DDL, SET autocommit ...)
// are refused, and so are statements that carry the context of a guarded
// transaction but run outside it. Rows that a caller has not closed keep the
// transaction from being committed, [ErrRowsOpen]. Blind spots: what a stored
// procedure or a prepared EXECUTE does, and an error that comes only when rows
// are closed before their end.
//
// # Protected rows
//
// A key protects the rows that are named ([Tx.Protect], [Tx.ProtectNew],
// [Tx.ProtectPrimary]) and, with [Options].Key, those of every model with a tag
// that renders to the key. The tag stands on any field, a blank one too, and
// names fields in braces:
//
//	type Order struct {
//		_  struct{} `dbguard:"key=order:{No}"`
//		No string   `gorm:"size:64;uniqueIndex;not null"`
//	}
//
// Rows that are inserted are told by the unique index that goes with these
// fields, loaded ones by their primary key. A tag that can't be rendered fails
// the statement with [ErrTag]; [Check] finds that, and what tables lack, at
// start-up. A tag is known from the first use of its model on, or from Check: only
// then can raw SQL on its table be told from that on a table without one.
//
// A row with NULL in the columns of its index can't be protected: there may be
// any number of them. Times are looked for as their columns keep them, in a DATE
// as days.
//
// # Conflicts
//
// A plain INSERT that the database refuses as a duplicate, and a versioned
// UPDATE or DELETE that matches fewer rows than it was given, become a
// [*Conflict]. If the row is protected, it is read twice by its key columns,
// before anything else happens: once plainly, which shows the snapshot, and once
// with a share lock and without waiting, which shows what is committed now. If
// the two differ, somebody wrote the row while this caller had the lock. So they
// did if the row is not what this operation saw of it before, in this attempt or
// in an earlier one that shares its [Memory]. Which index fired does not matter,
// and no error text is parsed. PostgreSQL takes no reads after an error: there
// the row is compared with what it was before, and once more after [Tx.Rollback].
//
// An insert that the server ends with a deadlock is followed by one read: a row
// that is not there then, and is in the way of the next attempt, was written
// under this caller's lock.
//
// A duplicate whose row is spelled in another way, which a collation takes for the
// same, is no overlap: its writer had another key. If the key protects several rows,
// [Evidence].Several says so, for one of them may be another key's.
//
// Blind spots: a row that was written between the grant of the lock and the
// snapshot; one whose writer won a deadlock against this insert and committed
// before that read; one that was deleted and made again with the same primary key
// and version; a row changed under the snapshot that nothing but raw SQL had read;
// and, after own raw SQL on its table, what a conflict says at all.
//
// # The end
//
// [Tx.Coverage] tells whether the database would refuse a second such
// transaction by itself. After [ErrCommitUnknown], [Tx.Resolve] ends the old session
// and looks for a proof of what became of the transaction, on the server that had it.
// PostgreSQL is asked; on MySQL and MariaDB a column of type [Stamp] gives one.
package dbguard
