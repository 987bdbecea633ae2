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
//
// Every statement first asks whether the lease lives. A statement after which
// the transaction can't be trusted (a deadlock, a lost connection, a statement
// that was cut short, a conflict that proves another writer) poisons it: no
// further statement is sent, and it can only be rolled back. After a deadlock
// MySQL has rolled back by itself, and the next statement would commit alone.
//
// The end runs on a context of its own, because the caller's may be what has
// just ended. A connection whose end was not acknowledged is discarded, never
// pooled. An error packet in answer to COMMIT means that nothing was committed;
// silence means that nobody knows, [ErrCommitUnknown].
//
// Statements that end or commit a transaction (COMMIT, DDL, SET autocommit ...)
// are refused, and so are statements that carry the context of a guarded
// transaction but run outside it. Rows that a caller has not closed keep the
// transaction from being committed, [ErrRowsOpen]. Blind spots: what a stored
// procedure or a prepared EXECUTE does, and an error that comes only when rows
// are closed before their end.
//
// # Conflicts
//
// A plain INSERT that the database refuses as a duplicate, and a versioned
// UPDATE that matches no row, become a [*Conflict]. If the row is one that was
// named with [Tx.Protect], it is read twice by its key columns, before anything
// else happens: once plainly, which shows the snapshot, and once with a share
// lock, which shows what is committed now. If the two differ, somebody wrote
// the row while this caller had the lock. Which index fired does not matter,
// and no error text is parsed.
package dbguard
