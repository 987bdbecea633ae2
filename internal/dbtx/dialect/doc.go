// Package dialect is what Belay must know of MySQL, MariaDB, PostgreSQL and SQLite: how a
// transaction begins, what an error means, what the server says of one of its
// connections, and how an old session is ended. It knows no transaction of Belay's.
package dialect
