package dialect

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestPoisons(t *testing.T) {
	for number, want := range map[uint16]bool{
		1213: true,  // deadlock: rolled back
		1206: true,  // no room for locks: rolled back
		1020: true,  // changed since the snapshot: rolled back
		1062: false, // duplicate
		1205: false, // lock wait: the statement only
		1064: false, // syntax
	} {
		err := fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number})
		if got := (Dialect{Name: "mysql"}).Poisons(err); got != want {
			t.Errorf("poisons(%d) = %v, want %v", number, got, want)
		}
	}
	if !(Dialect{Name: "mysql"}).Poisons(sql.ErrConnDone) {
		t.Error("a connection that broke at the statement before may go on")
	}
}

func TestPoisonsPostgres(t *testing.T) {
	for code, want := range map[string]bool{
		"40001": true,  // changed since the snapshot
		"40P01": true,  // deadlock
		"40003": true,  // statement completion unknown
		"57P01": true,  // shut down
		"08006": true,  // connection lost
		"23505": false, // duplicate: a savepoint may be rolled back to
	} {
		if got := (Dialect{Name: "postgres"}).Poisons(fmt.Errorf("wrapped: %w", postgresError(code))); got != want {
			t.Errorf("poisons(%s) = %v, want %v", code, got, want)
		}
	}
}

// TestUnreachable: Resolve tries again while a server serves nobody.
func TestUnreachable(t *testing.T) {
	for number, want := range map[uint16]bool{
		1040: true,  // too many connections
		1047: true,  // no member of a majority of Galera
		1290: true,  // read-only
		3032: true,  // offline
		6400: true,  // the same since MySQL 9
		1142: false, // not allowed
	} {
		if got := Unreachable(fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number})); got != want {
			t.Errorf("unreachable(%d) = %v, want %v", number, got, want)
		}
	}
}

type postgresError string

func (e postgresError) Error() string { return "code " + string(e) }

func (e postgresError) SQLState() string { return string(e) }

// codedError is an error of the program's own.
type codedError int

func (e codedError) Error() string { return fmt.Sprintf("code %d", int(e)) }

func (e codedError) Code() int { return int(e) }

// TestErrorsOfOthers: an error of a hook may look like one of the database, or be
// one of another.
func TestErrorsOfOthers(t *testing.T) {
	for name, err := range map[string]error{
		"mysql":    postgresError("40001"),
		"postgres": &mysql.MySQLError{Number: erLockDeadlock},
		"sqlite":   codedError(13),
	} {
		if d := (Dialect{Name: name}); d.Poisons(err) || d.Poisons(codedError(10)) {
			t.Errorf("%s: the transaction is poisoned by %v", name, err)
		}
	}
	if IsDuplicate(codedError(2067)) || IsChanged(codedError(517)) || FromServer(codedError(1)) || SQLite.NotCommitted(codedError(1)) {
		t.Error("an error with a code is taken for one of SQLite's")
	}
}

func TestNotCommitted(t *testing.T) {
	for err, want := range map[error]bool{
		&mysql.MySQLError{Number: 1213}: true,  // deadlock
		&mysql.MySQLError{Number: 1205}: true,  // lock wait
		&mysql.MySQLError{Number: 1020}: true,  // changed since the snapshot
		&mysql.MySQLError{Number: 1290}: true,  // read-only
		&mysql.MySQLError{Number: 1792}: true,  // read-only
		&mysql.MySQLError{Number: 1836}: true,  // read-only
		&mysql.MySQLError{Number: 3101}: false, // the group may have it in its order
		&mysql.MySQLError{Number: 1927}: false, // killed
		&mysql.MySQLError{Number: 1180, Message: "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT"}: true,
		&mysql.MySQLError{Number: 1180, Message: "Fehler 149 - 'Lock deadlock; Retry transaction' beim COMMIT"}:      true,
		&mysql.MySQLError{Number: 1180, Message: "Got error 28 - 'No space left on device' during COMMIT"}:           false,
		&mysql.MySQLError{Number: 1317}: false, // interrupted
		&mysql.MySQLError{Number: 1053}: false, // shut down
		postgresError("23503"):          true,  // a constraint that is checked at the end
		postgresError("57P01"):          false, // shut down
		postgresError("08006"):          false, // connection lost
		driver.ErrBadConn:               true,  // not sent
		mysql.ErrInvalidConn:            false,
		io.EOF:                          false,
	} {
		if got := notCommitted(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("notCommitted(%v) = %v, want %v", err, got, want)
		}
	}
}

// TestUndone: a transaction that a group has undone may be made again.
func TestUndone(t *testing.T) {
	for err, want := range map[error]bool{
		&mysql.MySQLError{Number: 1030, Message: "Got error 153 - 'No savepoint with that name' from storage engine"}: true,
		&mysql.MySQLError{Number: 1181, Message: "Got error 153 - 'No savepoint with that name' during ROLLBACK"}:     true,
		&mysql.MySQLError{Number: 1030, Message: "错误 153, 来自存储引擎 InnoDB"}:                                             true,
		&mysql.MySQLError{Number: 1030, Message: "Got error 28 - 'No space left on device' from storage engine"}:      false,
	} {
		if Retryable(err) != want {
			t.Errorf("Retryable(%v) = %t", err, !want)
		}
	}
}
