package dialect

import (
	"context"
	"database/sql"

	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/pgsync"
)

// A Dialect is what the guarded transaction must know about a database.
type Dialect struct {
	Name  string
	Begin string
	Share string // what makes a SELECT read the newest committed row and hold it; empty = a plain one does
	// Aborts: after an error a transaction takes no statement but a ROLLBACK.
	Aborts bool
	// ReadSession returns what the server says of a connection.
	ReadSession func(context.Context, *sql.Conn) (Session, error)
	// Loses, if there is one, says by which setting of a connection a commit that was
	// acknowledged may be lost, and what to set; "" if by none.
	Loses func(context.Context, *sql.Conn) (why, fix string, err error)
	// Diagnose, if there is one, finds other settings of a connection and rights of its user
	// that Belay needs otherwise.
	Diagnose func(context.Context, *sql.Conn, Session) ([]doctor.Finding, error)
	// Clock is a query for the server's time in microseconds since 1970; empty where it is
	// this host's.
	Clock string
	// MaxConnections is a query for how many connections the server takes; likewise.
	MaxConnections string
	// ReadTransaction, if there is one, returns the number of the transaction, and reports
	// whether s is the session that has it: behind a pooler it may be another.
	ReadTransaction func(ctx context.Context, c *sql.Conn, s Session) (number string, own bool, err error)
	// Restarted reports whether the server has crashed or been restarted between two reads
	// of a session.
	Restarted func(ctx context.Context, c *sql.Conn, then, now Session) (bool, error)
	// EndSession sees to it that a read on another connection meets all that the session
	// will have committed, or waits for it. It returns ErrStranger if the session is another
	// client's.
	EndSession func(context.Context, *sql.Conn, Session) error
	// CatchUp, if there is one, waits until the server has applied what its cluster has in
	// order by now, which may have the transaction.
	CatchUp func(context.Context, *sql.Conn, Session) error
	// AwaitCommit, if there is one, waits until what a COMMIT of the session has made visible
	// is durable; of any session behind a pooler.
	AwaitCommit func(ctx context.Context, c *sql.Conn, s Session, pooled bool) error
	// Barrier, if there is one, reports whether to end a transaction with a COMMIT, which then
	// waits until all that was read in it is as safe as a commit that is acknowledged.
	Barrier func(context.Context, *sql.Conn) (bool, error)
	// EndTransaction does so by the number of a transaction, where transactions have one.
	EndTransaction func(ctx context.Context, c *sql.Conn, number string) error
	// Writer returns an error if the server takes no writes now. What was read there before
	// is final only if it does: the writer by now may be another server, which has commits
	// that this one lacks, or lacks some that this one shows.
	Writer func(context.Context, *sql.Conn, Session) error
	// StillMember reports whether the server has been a member of its MySQL group all the
	// time since the session was read: then an error of IsRefused says that nothing was
	// committed. Nil where there is no such error.
	StillMember func(context.Context, *sql.Conn, Session) (bool, error)
}

// Of returns the dialect of a database by its name in gorm. It reports false if Belay
// does not know it.
func Of(name string) (Dialect, bool) {
	switch name {
	case "mysql":
		return Dialect{
			Name:        name,
			Begin:       "START TRANSACTION WITH CONSISTENT SNAPSHOT",
			Share:       "LOCK IN SHARE MODE",
			ReadSession: readMySQLSession,
			Loses:       losesMySQL,
			Diagnose:    diagnoseMySQL,
			Clock:       "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",

			MaxConnections: "SELECT @@max_connections",
			Restarted:      restartedMySQL,
			EndSession:     endMySQLSession,
			CatchUp:        catchUpMySQL,
			AwaitCommit:    awaitMySQLCommit,
			Writer:         mysqlWriter,
			StillMember:    stillMember,
		}, true
	case "postgres":
		return Dialect{
			Name:            name,
			Begin:           "BEGIN",
			Aborts:          true,
			ReadSession:     readPostgresSession,
			ReadTransaction: readPostgresTransaction,
			Loses:           losesPostgres,
			Diagnose:        diagnosePostgres,
			Clock:           "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
			MaxConnections:  "SELECT current_setting('max_connections')::int",
			Restarted:       func(_ context.Context, _ *sql.Conn, then, now Session) (bool, error) { return then.Run != now.Run, nil },
			EndSession:      endPostgresSession,
			Writer:          postgresWriter,
			Barrier:         func(ctx context.Context, c *sql.Conn) (bool, error) { return pgsync.Barrier(ctx, c) },
			EndTransaction:  endPostgresTransaction,
		}, true
	case "sqlite":
		return Dialect{
			Name:        name,
			Begin:       "BEGIN IMMEDIATE",
			ReadSession: func(context.Context, *sql.Conn) (Session, error) { return Session{Snapshot: true}, nil },
			Restarted:   func(context.Context, *sql.Conn, Session, Session) (bool, error) { return false, nil },
			EndSession:  func(context.Context, *sql.Conn, Session) error { return nil },
			Writer:      func(context.Context, *sql.Conn, Session) error { return nil },
		}, true
	default:
		return Dialect{}, false
	}
}

// Statements splits query into the statements that have any words.
func (d Dialect) Statements(query string) []sqltext.Statement {
	return sqltext.Split(query, d.Name == "mysql")
}
