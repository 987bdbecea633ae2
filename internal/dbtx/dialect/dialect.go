package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/doctor"
)

// A Dialect has the properties of a database that the guarded transaction needs.
type Dialect struct {
	Name  string
	Begin string
	Share string // makes a SELECT read the newest committed row and lock it; empty = a plain one reads it
	// Aborts: after an error a transaction takes no statement but a ROLLBACK.
	Aborts bool
	// ReadSession reads the session of a connection.
	ReadSession func(context.Context, *sql.Conn) (Session, error)
	// Loses, if there is one, returns the setting of a connection by which an
	// acknowledged commit may be lost, and its fix; "" if there is none.
	Loses func(context.Context, *sql.Conn) (why, fix string, err error)
	// Diagnose, if there is one, finds other settings of a connection and rights of its user
	// that Belay needs otherwise.
	Diagnose func(context.Context, *sql.Conn, Session) ([]doctor.Finding, error)
	// Clock is a query for the server's time in microseconds since 1970; empty where it is
	// this host's.
	Clock string
	// MaxConnections is a query for the server's limit of connections; empty if it has
	// none.
	MaxConnections string
	// ReadTransaction, if there is one, returns what the server reports of the transaction,
	// after a statement that writes rows. Without one it reads only.
	ReadTransaction func(ctx context.Context, c *sql.Conn, s Session, write string, args ...any) (Transaction, error)
	// Restarted reports whether the server has crashed or been restarted between two reads
	// of a session.
	Restarted func(ctx context.Context, c *sql.Conn, then, now Session) (bool, error)
	// EndSession makes sure that a read on another connection sees, or waits for, all that
	// the session will have committed. It returns ErrStranger if the session is another
	// client's.
	EndSession func(context.Context, *sql.Conn, Session) error
	// CatchUp, if there is one, waits until the server has applied all that its cluster
	// has ordered by now, which may include the transaction.
	CatchUp func(context.Context, *sql.Conn, Session) error
	// AwaitCommit, if there is one, waits until the visible writes of the session's COMMIT
	// are durable; behind a pooler, those of any session.
	AwaitCommit func(ctx context.Context, c *sql.Conn, s Session, pooled bool) error
	// Barrier, if there is one, reports whether to end a transaction with a COMMIT, which then
	// waits until all rows read in it are as safe as an acknowledged commit.
	Barrier func(context.Context, *sql.Conn) (bool, error)
	// EndTransaction does what EndSession does, by the number of a transaction, where
	// transactions have one.
	EndTransaction func(ctx context.Context, c *sql.Conn, number string) error
	// Writer returns an error if the server takes no writes now. Earlier reads are final
	// only if it does: otherwise another server may be the writer by now, with commits that
	// this one lacks, or without some that this one shows.
	Writer func(context.Context, *sql.Conn, Session) error
	// StillMember reports whether the server has been a member of its MySQL group ever
	// since the session was read, so that an error of IsRefused proves that nothing was
	// committed. Nil where there is no such error.
	StillMember func(context.Context, *sql.Conn, Session) (bool, error)
}

// Statements splits query into the statements that have any words, as a server reads it by
// default.
func (d Dialect) Statements(query string) []sqltext.Statement {
	return sqltext.Split(query, map[string]sqltext.Grammar{"mysql": sqltext.MySQL, "postgres": sqltext.Postgres}[d.Name])
}

// Quote returns a name, which may have a schema before it, between quotes. It has none in it.
func (d Dialect) Quote(name string) string {
	quote := `"`
	if d.Name == "mysql" {
		quote = "`"
	}
	return quote + strings.ReplaceAll(name, ".", quote+"."+quote) + quote
}

// Mark returns the mark of the nth argument of a statement.
func (d Dialect) Mark(n int) string {
	if d.Name == "postgres" {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}
