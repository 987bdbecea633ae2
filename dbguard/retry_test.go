package dbguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/dbguard"
)

// A codedError has codes of the program's own, which may be like those of SQLite.
type codedError int

func (codedError) Error() string { return "coded" }
func (c codedError) Code() int   { return int(c) }

type stateError string

func (stateError) Error() string      { return "state" }
func (s stateError) SQLState() string { return string(s) }

func TestRetryable(t *testing.T) {
	for err, want := range map[error]bool{
		nil:                             false,
		errors.New("deadlock"):          false,
		context.Canceled:                false,
		dbguard.ErrCommitUnknown:        false,
		&mysql.MySQLError{Number: 1213}: true,
		&mysql.MySQLError{Number: 1020}: true,
		&mysql.MySQLError{Number: 1062}: false,
		&mysql.MySQLError{Number: 1205}: false,
		stateError("40001"):             true,
		stateError("40P01"):             true,
		stateError("23505"):             false,
		codedError(5):                   false,
		codedError(517):                 false,
		codedError(6):                   false,
		sqliteError(t, 5):               true,
		sqliteError(t, 517):             true,
		sqliteError(t, 6):               true,
		sqliteError(t, 1555):            false,
	} {
		if err != nil {
			err = fmt.Errorf("commit: %w", err)
		}
		if got := dbguard.Retryable(err); got != want {
			t.Errorf("Retryable(%v) = %t, want %t", err, got, want)
		}
	}
}

// sqliteError has SQLite give an error with a code.
func sqliteError(t *testing.T, code int) error {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "test.db")+"?_pragma=journal_mode(wal)")
	wantNil(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	one, err := pool.Conn(bg)
	wantNil(t, err)
	defer func() { _ = one.Close() }()
	another, err := pool.Conn(bg)
	wantNil(t, err)
	defer func() { _ = another.Close() }()
	exec := func(c *sql.Conn, query string) error {
		_, err := c.ExecContext(bg, query)
		return err
	}
	wantNil(t, exec(one, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)"))
	switch code {
	case 5: // BUSY
		wantNil(t, exec(one, "BEGIN IMMEDIATE"))
		err = exec(another, "BEGIN IMMEDIATE")
	case 6: // LOCKED
		rows, queryErr := one.QueryContext(bg, "SELECT a FROM t")
		wantNil(t, queryErr)
		defer func() { _ = rows.Close() }()
		rows.Next()
		err = exec(one, "DROP TABLE t")
		wantNil(t, rows.Err())
	case 517: // BUSY_SNAPSHOT
		wantNil(t, exec(one, "BEGIN; SELECT a FROM t"))
		wantNil(t, exec(another, "INSERT INTO t VALUES (2)"))
		err = exec(one, "INSERT INTO t VALUES (3)")
	default:
		err = exec(one, "INSERT INTO t VALUES (1)")
	}
	var coded interface{ Code() int }
	if !errors.As(err, &coded) || coded.Code() != code {
		t.Fatalf("error is %v, want code %d", err, code)
	}
	return err
}
