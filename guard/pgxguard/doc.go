// Package pgxguard lets the operations of a guard.Guard write by pgx, without database/sql. The Guard
// is of a pool that pgx's stdlib has opened on a pgxpool.Pool:
//
//	db := stdlib.OpenDBFromPool(pool)
//	b, err := belay.Open(ctx, belay.Config{SQL: db, ...})
//
// Its connections may be wrapped, as otelsql does it, if the wrapper has a method Raw that returns
// the driver.Conn below.
//
// An operation gets a pgx.Tx on the connection of its transaction. The Tx is what sqlc generates for,
// and what River and other libraries take. Rows are named by guard.Row, and guard.UpdateRow,
// guard.Changed and guard.Inserted are for pgx, too. An INSERT that the database refuses because of a
// protected row returns a *dbguard.ConflictError, whose text ends with that of the *pgconn.PgError
// which it wraps.
//
// What differs from a pgx.Tx of pgx:
//
//   - Commit and Rollback of the operation's own Tx return an error that matches guard.ErrTxControl
//     and send nothing, and then the operation can't be committed. What Begin returns is a savepoint,
//     and ends as usual. While it is open, its outer Tx takes no statements.
//   - SendBatch sends a query when its result is asked for, and the rest in Close: each is judged
//     before the next one is sent. So a batch costs a round trip for each query. Without Close the
//     operation can't be committed.
//   - A statement of which nobody knows whether the server has executed it keeps the operation from
//     being committed. That is so for arguments that pgx can't encode, too.
//   - Conn leads past Belay: what is written there is in the transaction, and no judge sees it.
//   - LargeObjects are not supported.
//   - A statement that was prepared elsewhere, as in AfterConnect of the pool, may be executed by its
//     name, but Belay does not know what it writes.
//
// What is sent by the pool itself is outside of the transaction, and is not refused as it is with
// database/sql and GORM: Belay does not see it.
//
// A program that imports the package, for that alone perhaps, sends what Belay does before an operation in one
// round trip: BEGIN, the claim of a request, looks at rows that are about to be inserted. That is so
// for operations by GORM and database/sql, too, on each Guard whose pool is one of pgx's stdlib and is
// not wrapped, as GORM's driver for PostgreSQL opens it. A pgx.QueryTracer sees these statements only if it
// is a pgx.BatchTracer, too.
//
// After the end of the operation every method but Conn returns an error that matches
// pgx.ErrTxClosed.
package pgxguard
