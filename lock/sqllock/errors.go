package sqllock

import (
	"context"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/sqlerr"
	"github.com/belaygo/belay/lock/lockengine"
)

// errClosed is returned when the engine has been closed.
var errClosed = fmt.Errorf("%w: sqllock: closed", lockengine.ErrDenied)

// errUnkeyed is returned where the database cannot distinguish the rows of two owners.
var errUnkeyed = fmt.Errorf("%w: the primary key of belay_lock and of belay_done has to be name alone, as sqllock.Migrate creates it", lockengine.ErrDenied)

// unconnected is the error of a statement for which there was no connection: nothing was
// sent.
func unconnected(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", lockengine.ErrNotSent, err)
	}
	if sqlerr.IsMySQL(err, 1044, 1045, 1049, 1129, 1130, 1698) || // access denied, no such database, host blocked
		sqlerr.IsPostgres(err, "28", "3D") {
		return fmt.Errorf("%w: %w", lockengine.ErrDenied, err)
	}
	return fmt.Errorf("%w: %w", lockengine.ErrNotSent, err)
}

// classify adds to the error of a statement, which is one transaction, whether it may have
// been executed, unless the error shows that already.
func classify(err error) error {
	switch {
	case err == nil, errors.Is(err, lockengine.ErrNotSent):
		return err
	case rolledBack(err):
		return fmt.Errorf("%w: %w", lockengine.ErrNotSent, err)
	case autocommitIsOff(err):
		return fmt.Errorf("%w: autocommit is off: set it in the DSN or on the server: %w", lockengine.ErrDenied, err)
	case sqlerr.IsPostgres(err, "42P10"):
		return fmt.Errorf("%w: %w", errUnkeyed, err)
	case missing(err):
		return fmt.Errorf("%w: %w; sqllock.Migrate creates the tables", lockengine.ErrDenied, err)
	case sqlerr.IsMySQL(err, 1142, 1143, 1227) || sqlerr.IsPostgres(err, "42501"): // a right
		return fmt.Errorf("%w: %w", lockengine.ErrDenied, err)
	case sqlerr.IsMySQL(err, 1021, 1114) || sqlerr.IsPostgres(err, "53100") || sqlerr.IsSQLite(err, 13): // the disk is full
		return fmt.Errorf("%w: %w", lockengine.ErrRefused, err)
	case errors.Is(err, context.Canceled), sqlerr.FromServer(err) && !endsSession(err):
		return err
	}
	return fmt.Errorf("%w: %w", lockengine.ErrNoAnswer, err)
}

// rolledBack reports whether err shows that nothing was executed: another statement was in the
// way, or the server is read-only or not ready.
func rolledBack(err error) bool {
	return sqlerr.IsReadOnly(err) ||
		sqlerr.IsMySQL(err, 1213, 1205, 1020, 1412, 3101, 1047) || // deadlock, lock wait timeout, row or table changed, group conflict; Galera's node is not ready
		sqlerr.IsPostgres(err, "40001", "40P01", "55P03") || // serialization failure, deadlock, lock not available
		sqlerr.IsSQLite(err, 5, 6) // busy, locked
}

// isSpent reports whether the connection must not be used again. A new one may lead to a server
// that takes writes, or have autocommit on.
func isSpent(err error) bool {
	return sqldb.TakesNoWrites(err) || autocommitIsOff(err)
}

// autocommitIsOff reports whether autocommitCheck was out of range, as it is without autocommit.
func autocommitIsOff(err error) bool { return sqlerr.IsMySQL(err, 1690) }

// endsSession reports whether the server ended the session, or interrupted the statement:
// it may have been committed, and be about to wait for a replica. 40003 and 8501 are the unknown
// outcomes of servers like PostgreSQL and of TiDB.
func endsSession(err error) bool {
	return sqlerr.IsMySQL(err, 1053, 1317, 1927, 3169, 8501) || sqlerr.IsPostgres(err, "57", "08", "40003")
}

// missing reports whether a table or a column is not there.
func missing(err error) bool {
	return sqlerr.IsMySQL(err, 1054, 1146) || sqlerr.IsPostgres(err, "42P01", "42703") || sqlerr.IsSQLite(err, 1)
}

// checkRequest returns an error unless the table has room for r: a database that is not
// strict would cut it.
func checkRequest(r lockengine.Request) error {
	const maxName, maxOwner = 512, 128
	switch {
	case len(r.Key) > maxName:
		return fmt.Errorf("sqllock: %w: it has %d bytes, at most %d are allowed", lockengine.ErrUnusable, len(r.Key), maxName)
	case r.Owner == "" || len(r.Owner) > maxOwner:
		return fmt.Errorf("sqllock: %w: owner %q has not 1 to %d bytes", lockengine.ErrDenied, r.Owner, maxOwner)
	}
	return nil
}
