package simdb

import (
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func pgErr(code, message string) error {
	return &pgconn.PgError{Severity: "ERROR", Code: code, Message: message}
}

// pgAnswers are those of PostgreSQL.
var pgAnswers = []question{
	{"PING", none},
	{"SELECT pg_backend_pid(), format('%s:%s %s %s'", pgSession},
	{"SELECT pg_backend_pid()", func(s *session, _ []any) (*result, error) { return table1("pid", []any{s.id}) }},
	{"SELECT coalesce(pg_current_xact_id_if_assigned()::text, '')", func(s *session, _ []any) (*result, error) {
		return table1("number,pid,start", []any{s.number(), s.id, s.db.run()})
	}},
	{"SELECT pg_xact_status($1::xid8)", pgStatus},
	{"SELECT CASE WHEN wait_event = 'SyncRep' THEN FALSE ELSE pg_terminate_backend(pid) END", pgTerminate},
	{"SELECT pg_logical_emit_message(true, 'belay', '')", func(*session, []any) (*result, error) { return table1("lsn", []any{"0/0"}) }},
	{"SELECT coalesce(current_setting('synchronous_standby_names', true), '') <> ''", func(*session, []any) (*result, error) { return table1("waits", []any{false}) }},
	{"SELECT concat(set_config('enable_sort', 'off', true)", func(*session, []any) (*result, error) { return table1("concat", []any{""}) }},
	{"SELECT pg_is_in_recovery()", func(*session, []any) (*result, error) { return table1("standby", []any{false}) }},
	{"SELECT TRUE AS transactional, EXISTS (SELECT 1 FROM pg_trigger", facts},
	{"SELECT c.relname AS name, a.attname AS col", indexes},
}

// numberPg is what a write returns of its transaction.
const numberPg = "COALESCE ( PG_CURRENT_XACT_ID_IF_ASSIGNED ( ) : : TEXT , '' ) , PG_BACKEND_PID ( ) , " +
	"EXTRACT ( EPOCH FROM PG_POSTMASTER_START_TIME ( ) ) : : TEXT"

// number returns that of the transaction, "" if it has none.
func (s *session) number() string {
	if s.tx == nil || s.tx.number == 0 {
		return ""
	}
	return strconv.FormatInt(s.tx.number, 10)
}

func pgSession(s *session, _ []any) (*result, error) {
	return table1("pid,server,run,started,numbers,lock_timeout,version,is_citus", []any{
		s.id, fmt.Sprintf("10.0.0.%d:5432 7 00000001", s.db.server), s.db.run(), s.started, true, "0",
		"PostgreSQL 15.14 on x86_64-pc-linux-gnu", false,
	})
}

// run is when the server was started.
func (d *Database) run() string { return d.started.Format(time.RFC3339Nano) }

func pgStatus(s *session, args []any) (*result, error) {
	n, _ := strconv.ParseInt(args[0].(string), 10, 64)
	status := "aborted"
	switch t := s.db.statuses[n]; {
	case t == nil:
	case t.committed > 0:
		status = "committed"
	case !t.ended:
		status = "in progress"
	}
	return table1("pg_xact_status", []any{status})
}

func pgTerminate(s *session, args []any) (*result, error) {
	if len(args) == 1 {
		return pgTerminateTransaction(s, args[0].(string))
	}
	victim := s.db.sessionOf(args[0].(int64))
	began, _ := args[1].(time.Time)
	if victim == nil || args[1] != nil && !began.Equal(victim.started.Round(time.Microsecond)) {
		return table1("pg_terminate_backend")
	}
	s.db.kill(victim, s.db.killedError())
	return table1("pg_terminate_backend", []any{true})
}

// pgTerminateTransaction ends the session that has a transaction, which it has until that is
// durable.
func pgTerminateTransaction(s *session, number string) (*result, error) {
	for _, victim := range s.db.sessions {
		has := victim.flushes
		if victim.tx != nil {
			has = victim.tx.number
		}
		if has != 0 && strconv.FormatInt(has, 10) == number {
			s.db.kill(victim, s.db.killedError())
			return table1("pg_terminate_backend", []any{true})
		}
	}
	return table1("pg_terminate_backend")
}
