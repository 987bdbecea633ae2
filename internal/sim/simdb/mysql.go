package simdb

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
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

// An answer is that to a question about the server, which is no read of rows.
type answer func(s *session, sql string, args []any) (*result, error)

func table1(columns string, rows ...[]any) (*result, error) {
	return &result{columns: strings.Split(columns, ","), rows: rows}, nil
}

var digits = regexp.MustCompile(`\d+`)

// myAnswers are found by how their questions begin, spaces aside.
var myAnswers = map[string]answer{
	"PING":                   func(*session, string, []any) (*result, error) { return &result{}, nil },
	"SELECT VERSION()":       func(*session, string, []any) (*result, error) { return table1("version", []any{myVersion}) },
	"SELECT DATABASE()":      func(*session, string, []any) (*result, error) { return table1("database", []any{"belay"}) },
	"SELECT CONNECTION_ID()": func(s *session, _ string, _ []any) (*result, error) { return table1("id", []any{s.id}) },
	"SHOW GLOBAL STATUS LIKE 'Uptime'": func(s *session, _ string, _ []any) (*result, error) {
		up := time.Since(s.db.started) / time.Second
		return table1("Variable_name,Value", []any{"Uptime", strconv.Itoa(int(up))})
	},
	"SHOW SESSION VARIABLES WHERE Variable_name IN": myVariables,
	"SELECT COUNT(*) FROM information_schema.processlist WHERE id = ": func(*session, string, []any) (*result, error) {
		return table1("count", []any{int64(0)}) // none waits for a replica
	},
	"KILL ":                                  myKill,
	"SELECT COALESCE((SELECT e.transactions": func(*session, string, []any) (*result, error) { return noFacts() },
	"SELECT index_name AS name, IF(sub_part IS NULL":             myIndexes,
	"SELECT column_name AS name, data_type AS kind":              myColumns,
	"SELECT COUNT(*) FROM information_schema.statistics WHERE i": myIndexNames,
}

const myVersion = "10.11.19-MariaDB"

func myVariables(s *session, _ string, _ []any) (*result, error) {
	level, snapshot := s.level, "OFF"
	if s.db.personality == MariaDBSnapshot {
		snapshot = "ON"
	}
	return table1("Variable_name,Value",
		[]any{"hostname", fmt.Sprintf("db-%d", s.db.server)}, []any{"innodb_rollback_on_timeout", "OFF"},
		[]any{"innodb_snapshot_isolation", snapshot}, []any{"port", "3306"},
		[]any{"pseudo_thread_id", strconv.FormatInt(s.id, 10)},
		[]any{"sql_mode", "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION"},
		[]any{"tx_isolation", level}, []any{"version", myVersion})
}

func myKill(s *session, sql string, _ []any) (*result, error) {
	id, _ := strconv.ParseInt(digits.FindString(sql), 10, 64)
	victim := s.db.sessionOf(id)
	if victim == nil {
		return nil, myErr(erNoThread, id)
	}
	s.db.kill(victim, s.db.killedError())
	return &result{}, nil
}

// noFacts says that a table has transactions, and nothing that writes other rows.
func noFacts() (*result, error) {
	return table1("transactional,triggers,alters,cascades", []any{true, false, false, false})
}

func myIndexes(s *session, _ string, args []any) (*result, error) {
	return s.indexes(args, func(i *index) string {
		if i.primary() {
			return "PRIMARY"
		}
		return i.name
	})
}

// indexes lists the columns of a table's indexes.
func (s *session) indexes(args []any, name func(*index) string) (*result, error) {
	res, _ := table1("name,col,partial")
	t, err := s.named(args)
	if t == nil {
		return res, err
	}
	for _, i := range t.indexes {
		for _, c := range i.columns {
			res.rows = append(res.rows, []any{name(i), t.columns[c].name, false})
		}
	}
	return res, nil
}

// named returns the table whose name is in the arguments of a question. They have "" for
// a schema.
func (s *session) named(args []any) (*table, error) {
	for _, a := range args {
		if name, _ := a.(string); name != "" {
			return s.db.tables[strings.ToLower(name)], nil
		}
	}
	return nil, s.db.unknown(errors.New("a question about no table"))
}

var myKinds = map[int]string{kindText: "varchar", kindInt: "bigint", kindFloat: "double", kindBool: "tinyint", kindTime: "datetime"}

func myColumns(s *session, _ string, args []any) (*result, error) {
	return s.columns(args, myKinds, "utf8mb4", "utf8mb4_bin")
}

func (s *session) columns(args []any, kinds map[int]string, texts, collation string) (*result, error) {
	res, _ := table1("name,kind,digits,nullable,texts,collation")
	t, err := s.named(args)
	if t == nil {
		return res, err
	}
	for _, c := range t.columns {
		row := []any{c.name, kinds[c.kind], nil, !c.notNull, nil, nil}
		switch c.kind {
		case kindTime:
			row[2] = int64(6)
		case kindText:
			row[4], row[5] = texts, collation
		}
		res.rows = append(res.rows, row)
	}
	return res, nil
}

// myIndexNames counts the indexes of other tables with a name.
func myIndexNames(s *session, _ string, args []any) (*result, error) {
	n := int64(0)
	for _, name := range s.db.names {
		for _, i := range s.db.tables[name].indexes {
			if i.name == args[0] && name != args[len(args)-1] {
				n++
			}
		}
	}
	return table1("count", []any{n})
}
