package dbguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// A dialect is what the guarded transaction must know about a database.
type dialect struct {
	name  string
	begin string
	share string // what makes a SELECT read the newest committed row and hold it; empty = a plain one does
	// aborts: after an error a transaction takes no statement but a ROLLBACK.
	aborts bool
	ask    func(context.Context, *sql.Conn) (session, error)
	// restarted reports whether the server, asked once then and once now, has crashed or
	// been restarted in between.
	restarted func(ctx context.Context, c *sql.Conn, then, now session) (bool, error)
	// kill sees to it that a read on another connection meets all that the session
	// will have committed, or waits for it.
	kill func(context.Context, *sql.Conn, session) error
}

func dialectOf(db *gorm.DB) (dialect, error) {
	switch name := db.Name(); name {
	case "mysql":
		return dialect{
			name:      name,
			begin:     "START TRANSACTION WITH CONSISTENT SNAPSHOT",
			share:     "LOCK IN SHARE MODE",
			ask:       askMySQL,
			restarted: restartedMySQL,
			kill:      killMySQL,
		}, nil
	case "postgres":
		return dialect{
			name:      name,
			begin:     "BEGIN",
			aborts:    true,
			ask:       askPostgres,
			restarted: restartedPostgres,
			kill:      killPostgres,
		}, nil
	case "sqlite":
		return dialect{name: name, begin: "BEGIN IMMEDIATE"}, nil
	default:
		return dialect{}, fmt.Errorf("%w: %s", ErrDialect, name)
	}
}

// Numbers of MySQL's and MariaDB's errors.
const (
	erDupEntry         = 1062
	erDupEntryWithKey  = 1586
	erDupUnknownInIdx  = 1859
	erCheckRead        = 1020 // MariaDB: changed since the snapshot
	erLockDeadlock     = 1213
	erLockTableFull    = 1206
	erLockWaitTimeout  = 1205
	erLockNowait       = 3572
	erNoSuchThread     = 1094
	erKillDenied       = 1095
	erParse            = 1064
	erConCount         = 1040 // too many connections
	erServerShutdown   = 1053
	erConnectionKilled = 1927 // MariaDB
	erReadOnlyServer   = 1290
	erReadOnlyTx       = 1792
	erReadOnlyMode     = 1836
	erRolledBack       = 3101 // by group replication, at COMMIT
	erTableDefChanged  = 1412 // since the snapshot
	sqliteConstraintPK = 1555
	sqliteConstraintUQ = 2067
	sqliteBusySnapshot = 517
)

// Codes of PostgreSQL's.
const (
	pgUnique        = "23505"
	pgSerialization = "40001"
	pgDeadlock      = "40P01"
	pgLocked        = "55P03"
	pgAborted       = "25P02"
	pgConnections   = "53300" // too many
)

func mysqlNumber(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// sqliteCode returns the extended result code of an SQLite error, or 0. No driver
// can be imported, as two of them don't get along; and other errors have codes, too.
// A pure Go driver has the code in a method, mattn's in a field.
func sqliteCode(err error) int {
	for ; err != nil; err = errors.Unwrap(err) {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range several.Unwrap() {
				if code := sqliteCode(e); code != 0 {
					return code
				}
			}
		}
		if !strings.Contains(packageOf(err), "sqlite") {
			continue
		}
		if e, ok := err.(interface{ Code() int }); ok {
			return e.Code()
		}
		if e := reflect.Indirect(reflect.ValueOf(err)); e.Kind() == reflect.Struct {
			if code := e.FieldByName("ExtendedCode"); code.IsValid() && code.CanInt() {
				return int(code.Int())
			}
		}
	}
	return 0
}

// packageOf returns the import path of the package that declares v's type.
func packageOf(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath()
}

// postgresCode returns the SQLSTATE of a PostgreSQL error, or "".
func postgresCode(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// fromServer reports whether the database itself gave the error.
func fromServer(err error) bool {
	return mysqlNumber(err) != 0 || sqliteCode(err) != 0 || postgresCode(err) != ""
}

// unreachable reports whether no connection to the database could be made, or it broke,
// or the server takes none for now: it may answer later.
func unreachable(err error) bool {
	switch mysqlNumber(err) {
	case erConCount, erServerShutdown, erConnectionKilled:
		return true
	}
	switch code := postgresCode(err); {
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), code == pgConnections:
		return true
	}
	_, failed := errors.AsType[*net.OpError](err)
	return failed || isBroken(err)
}

// isBroken reports whether err is a driver's for a connection that broke.
func isBroken(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

func isDuplicate(err error) bool {
	switch mysqlNumber(err) {
	case erDupEntry, erDupEntryWithKey, erDupUnknownInIdx:
		return true
	}
	switch sqliteCode(err) {
	case sqliteConstraintPK, sqliteConstraintUQ:
		return true
	}
	return postgresCode(err) == pgUnique || errors.Is(err, gorm.ErrDuplicatedKey)
}

// isChanged reports the refusal of a row that changed since the snapshot.
func isChanged(err error) bool {
	return mysqlNumber(err) == erCheckRead || postgresCode(err) == pgSerialization || sqliteCode(err) == sqliteBusySnapshot
}

// isDeadlock reports that the server has rolled the transaction back in favour
// of another.
func isDeadlock(err error) bool {
	return mysqlNumber(err) == erLockDeadlock || postgresCode(err) == pgDeadlock
}

// isLocked reports that a NOWAIT read met a lock.
func isLocked(err error) bool {
	n := mysqlNumber(err)
	return n == erLockNowait || n == erLockWaitTimeout || postgresCode(err) == pgLocked
}

// poisons reports whether err leaves a transaction that must not go on: the
// server has rolled it back, its connection is gone, or a statement was cut
// short, so that nobody knows what it did. A hook's error may be of another
// database, and says nothing.
func (d dialect) poisons(err error) bool {
	switch d.name {
	case "mysql":
		switch mysqlNumber(err) {
		case erLockDeadlock, erLockTableFull, erCheckRead, erTableDefChanged:
			return true
		}
	case "postgres":
		switch code := postgresCode(err); {
		case code == pgSerialization, code == pgDeadlock:
			return true
		case code != "" && (code[:2] == "57" || code[:2] == "08"): // shut down, cancelled, connection
			return true
		}
	case "sqlite":
		switch sqliteCode(err) & 0xff {
		case 7, 9, 10, 11, 13: // NOMEM, INTERRUPT, IOERR, CORRUPT, FULL may roll back by themselves
			return true
		}
	}
	return isBroken(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// refusedCommit reports whether an error of MySQL or MariaDB undoes a COMMIT. Most
// don't tell: to a session that is killed during its COMMIT the server says so in
// place of "done", too.
func refusedCommit(number uint16) bool {
	switch number {
	case erLockDeadlock, erLockWaitTimeout, erCheckRead, erReadOnlyServer, erReadOnlyTx, erReadOnlyMode, erRolledBack:
		return true
	}
	return false
}

// pgUnsure are the classes of errors after which PostgreSQL may find the commit in its
// log all the same: connection, resources, operator, system and internal.
var pgUnsure = []string{"08", "53", "57", "58", "XX"}

// notCommitted reports whether the error of a COMMIT proves that nothing was
// committed: the server said so, or the statement was not sent.
func notCommitted(err error) bool {
	code := postgresCode(err)
	return errors.Is(err, driver.ErrBadConn) || refusedCommit(mysqlNumber(err)) ||
		code != "" && !slices.Contains(pgUnsure, code[:2]) ||
		sqliteCode(err) != 0 && sqliteCode(err)&0xff != 10 // IOERR
}

// statements splits query into the statements that have any words.
func (d dialect) statements(query string) []sqltext.Statement {
	return sqltext.Split(query, d.name == "mysql")
}
