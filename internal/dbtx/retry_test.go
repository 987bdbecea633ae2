package dbtx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
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
		dbtx.ErrCommitUnknown:           false,
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
		if got := dbtx.Retryable(err); got != want {
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

// TestDeadlock has an operation swallow a deadlock: the server has rolled back,
// and a further insert would commit by itself. Where the statement reads, the
// error comes behind the first row, and only its reader gets it.
func TestDeadlock(t *testing.T) {
	const both = "SELECT id FROM stocks WHERE id <= 2 FOR UPDATE"
	for name, lockBoth := range map[string]func(tx *gorm.DB) error{
		"exec": func(tx *gorm.DB) error { return lockRow(tx, 2) },
		"find": func(tx *gorm.DB) error {
			return tx.Clauses(clause.Locking{Strength: "UPDATE"}).Find(&[]Stock{}).Error
		},
		"scan":     func(tx *gorm.DB) error { return tx.Raw(both).Scan(&[]int{}).Error },
		"scan one": func(tx *gorm.DB) error { return tx.Raw(both).Scan(new(int)).Error },
		"row":      func(tx *gorm.DB) error { return tx.Raw(both).Row().Scan(new(int)) },
		"rows": func(tx *gorm.DB) error {
			rows, err := tx.Raw(both).Rows()
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
			}
			return rows.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := testdb.OpenMySQL(t, teststack.MySQL(t))
			prepare(t, db)
			wantNil(t, db.Create(&[]Stock{{ID: 1}, {ID: 2}}).Error)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.DB().Create(&Order{No: "light"}).Error)
			wantNil(t, lockRow(tx.DB(), 1))
			deadlock(t, db, func() error { return lockBoth(tx.DB()) })

			wantIs(t, tx.DB().Create(&Order{No: "behind"}).Error, dbtx.ErrPoisoned)
			wantIs(t, tx.Commit(), dbtx.ErrPoisoned)
			if n := count(t, db, &Order{}); n != 0 {
				t.Errorf("%d rows, want none", n)
			}
		})
	}
}

// TestMigratedTableIsRetryable: a table was altered after the snapshot. MySQL refuses to
// read it, and all that follows.
func TestMigratedTableIsRetryable(t *testing.T) {
	testdb.Each(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		if db.Name() != "mysql" {
			return // a writer keeps migrations out
		}
		prepare(t, db)
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, db.Exec("ALTER TABLE stocks ADD note int NOT NULL DEFAULT 0, ALGORITHM = COPY").Error)
		err := tx.DB().Take(&Stock{}, 1).Error
		if !dbtx.Retryable(err) || tx.Poisoned() == nil {
			t.Errorf("error is %v, poisoned %v, want one that can be retried in another transaction", err, tx.Poisoned())
		}
	})
}
