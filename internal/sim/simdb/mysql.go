package simdb

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Numbers of MariaDB's errors.
const (
	erCheckRead   = 1020
	erDuplicate   = 1062
	erNoThread    = 1094
	erLockTimeout = 1205
	erDeadlock    = 1213
	erNoSavepoint = 1305
)

// myTexts has their states and texts.
var myTexts = map[uint16][2]string{
	erCheckRead:   {"HY000", "Record has changed since last read in table '%s'"},
	erDuplicate:   {"23000", "Duplicate entry '%v' for key '%s'"},
	erNoThread:    {"HY000", "Unknown thread id: %d"},
	erLockTimeout: {"HY000", "Lock wait timeout exceeded; try restarting transaction"},
	erDeadlock:    {"40001", "Deadlock found when trying to get lock; try restarting transaction"},
	erNoSavepoint: {"42000", "SAVEPOINT %s does not exist"},
}

func myErr(number uint16, args ...any) error {
	text := myTexts[number]
	return &mysql.MySQLError{Number: number, SQLState: [5]byte([]byte(text[0])), Message: fmt.Sprintf(text[1], args...)}
}

// undoesAll reports whether InnoDB has rolled the transaction back.
func undoesAll(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == erDeadlock || e.Number == erCheckRead) || errors.Is(err, errKilled)
}

// myAnswers are those of MariaDB.
var myAnswers = []question{
	{"PING", none},
	{"SELECT VERSION()", func(*session, []any) (*result, error) { return table1("version", []any{myVersion}) }},
	{"SELECT CONNECTION_ID()", func(s *session, _ []any) (*result, error) { return table1("id", []any{s.id}) }},
	{"SELECT @@in_transaction", func(s *session, _ []any) (*result, error) {
		return table1("@@in_transaction", []any{int64(map[bool]int{true: 1}[s.tx != nil])})
	}},
	{"SHOW GLOBAL STATUS LIKE 'Uptime'", func(s *session, _ []any) (*result, error) {
		return table1("Variable_name,Value", []any{"Uptime", fmt.Sprint(int(time.Since(s.db.started).Seconds()))})
	}},
	{"SHOW SESSION VARIABLES WHERE Variable_name IN", myVariables},
	{"SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only'", func(*session, []any) (*result, error) {
		return table1("Variable_name,Value", []any{"innodb_read_only", "OFF"}, []any{"read_only", "OFF"})
	}},
	{"SELECT COALESCE((SELECT e.transactions", facts},
	{"SELECT index_name AS name, IF(sub_part IS NULL", indexes},
}

const myVersion = "10.11.19-MariaDB"

func myVariables(s *session, _ []any) (*result, error) {
	snapshot := "OFF"
	if s.db.personality == MariaDBSnapshot {
		snapshot = "ON"
	}
	return table1("Variable_name,Value",
		[]any{"hostname", fmt.Sprintf("db-%d", s.db.server)}, []any{"innodb_rollback_on_timeout", "OFF"},
		[]any{"innodb_snapshot_isolation", snapshot}, []any{"innodb_lock_wait_timeout", "50"}, []any{"port", "3306"},
		[]any{"pseudo_thread_id", fmt.Sprint(s.id)}, []any{"server_id", "1"},
		[]any{"sql_mode", "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION"},
		[]any{"tx_isolation", repeatableRead}, []any{"version", myVersion}, []any{"version_comment", "Debian 12"})
}
