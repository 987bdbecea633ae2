// Package sqlfront lets programs that write SQL take part in a guarded transaction, by real
// values of database/sql: a *sql.DB and a *sql.Tx.
//
// A [Handle] is a pool without connections of its own. Its connector takes the operation from
// the context, and each call of database/sql goes on to the driver's connection on which the
// operation runs. There statements are admitted and judged, also those whose error comes with
// their rows. So libraries over database/sql work unchanged.
//
// The operation's *sql.Tx can't end the transaction: its Commit and Rollback send nothing and
// poison the operation. A transaction that is begun inside of one is a savepoint. Outside of
// an operation a Handle prepares statements, which an operation prepares again on its own
// connection, and answers queries that read no table: libraries ask for the server's version
// when they are set up.
package sqlfront
