package dialect

import (
	"context"
	"database/sql"

	"github.com/belaygo/belay/internal/pgsync"
)

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
			ReadSession: func(context.Context, *sql.Conn) (Session, error) { return Session{Family: SQLite, Snapshot: true}, nil },
			Restarted:   func(context.Context, *sql.Conn, Session, Session) (bool, error) { return false, nil },
			EndSession:  func(context.Context, *sql.Conn, Session) error { return nil },
			Writer:      func(context.Context, *sql.Conn, Session) error { return nil },
		}, true
	default:
		return Dialect{}, false
	}
}
