// Package sqlconn closes the connections of database/sql on which something went wrong.
package sqlconn

import (
	"database/sql"
	"database/sql/driver"

	"github.com/belaygo/belay/internal/background"
)

// Watch runs f, which uses c. If f panics, the connection to the server is closed, and the server
// rolls back: the next user of the pool must not join the transaction.
func Watch(c *sql.Conn, f func() error) error {
	ended := false
	defer func() {
		if !ended {
			Abort(c)
		}
	}()
	err := f()
	ended = true
	return err
}

// Abort closes the connection to the server. It does not wait for Discard: after a panic in a query
// database/sql takes the query for one that still runs, and Close would wait for its end.
func Abort(c *sql.Conn) {
	_ = c.Raw(func(conn any) error { return conn.(driver.Conn).Close() })
	go func() {
		_ = background.Do(nil, "close a connection to the database", func() error {
			Discard(c)
			return nil
		})
	}()
}

// Discard closes the connection, and does not give it back to the pool. The server rolls back.
func Discard(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Close()
}
