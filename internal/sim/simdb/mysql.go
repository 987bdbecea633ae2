package simdb

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Numbers of MariaDB's errors.
const (
	erCheckRead   = 1020
	erIsNull      = 1048
	erDuplicate   = 1062
	erNoThread    = 1094
	erNoTable     = 1146
	erLockTimeout = 1205
	erDeadlock    = 1213
	erNoSavepoint = 1305
)

var myTexts = map[uint16]string{
	erCheckRead:   "Record has changed since last read in table '%s'",
	erIsNull:      "Column '%s' cannot be null",
	erDuplicate:   "Duplicate entry '%s' for key '%s'",
	erNoThread:    "Unknown thread id: %d",
	erNoTable:     "Table 'belay.%s' doesn't exist",
	erLockTimeout: "Lock wait timeout exceeded; try restarting transaction",
	erDeadlock:    "Deadlock found when trying to get lock; try restarting transaction",
	erNoSavepoint: "SAVEPOINT %s does not exist",
}

var myStates = map[uint16]string{
	erIsNull: "23000", erDuplicate: "23000", erNoTable: "42S02", erDeadlock: "40001", erNoSavepoint: "42000",
}

func myErr(number uint16, args ...any) error {
	state := myStates[number]
	if state == "" {
		state = "HY000"
	}
	return &mysql.MySQLError{Number: number, SQLState: [5]byte([]byte(state)), Message: fmt.Sprintf(myTexts[number], args...)}
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
	{"SHOW GLOBAL STATUS LIKE 'Uptime'", func(s *session, _ []any) (*result, error) {
		return table1("Variable_name,Value", []any{"Uptime", fmt.Sprint(int(time.Since(s.db.started).Seconds()))})
	}},
	{"SHOW SESSION VARIABLES WHERE Variable_name IN", myVariables},
	{"SELECT COUNT(*) FROM information_schema.processlist WHERE id = ", func(*session, []any) (*result, error) {
		return table1("count", []any{int64(0)}) // none waits for a replica
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
		[]any{"innodb_snapshot_isolation", snapshot}, []any{"port", "3306"},
		[]any{"pseudo_thread_id", fmt.Sprint(s.id)},
		[]any{"sql_mode", "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION"},
		[]any{"tx_isolation", repeatableRead}, []any{"version", myVersion})
}

// killNumber is KILL.
func (db *Database) killNumber(number string) error {
	id, _ := strconv.ParseInt(number, 10, 64)
	victim := db.sessionOf(id)
	if victim == nil {
		return myErr(erNoThread, id)
	}
	db.kill(victim, db.killedError())
	return nil
}
