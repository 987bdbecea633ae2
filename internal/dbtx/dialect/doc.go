// Package dialect has the differences between MySQL, MariaDB, PostgreSQL and SQLite: how
// a transaction begins, the meaning of errors, the session of a connection, and how an
// old session is ended. It does not know the guarded transaction.
package dialect
