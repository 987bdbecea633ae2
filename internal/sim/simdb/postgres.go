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

// pgAnswers are found by how their questions begin, spaces aside.
var pgAnswers = map[string]answer{
	"PING":    func(*session, string, []any) (*result, error) { return &result{}, nil },
	"-- ping": func(*session, string, []any) (*result, error) { return &result{}, nil },
	"SELECT pg_backend_pid(), format('%s:%s %s %s'": pgSession,
	"SELECT pg_backend_pid()":                       func(s *session, _ string, _ []any) (*result, error) { return table1("pid", []any{s.id}) },
	"SELECT pg_current_xact_id_if_assigned()::text": func(s *session, _ string, _ []any) (*result, error) {
		if s.tx == nil || s.tx.number == 0 {
			return table1("pg_current_xact_id_if_assigned", []any{nil})
		}
		return table1("pg_current_xact_id_if_assigned", []any{strconv.FormatInt(s.tx.number, 10)})
	},
	"SELECT pg_xact_status($1::xid8)":                                pgStatus,
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity":         pgTerminate,
	"SELECT pg_logical_emit_message(true, 'belay', '')":              func(*session, string, []any) (*result, error) { return table1("lsn", []any{"0/0"}) },
	"SELECT TRUE AS transactional, EXISTS (SELECT 1 FROM pg_trigger": func(*session, string, []any) (*result, error) { return noFacts() },
	"SELECT c.relname AS name, a.attname AS col": func(s *session, _ string, args []any) (*result, error) {
		return s.indexes(args, func(i *index) string { return i.name })
	},
	"SELECT a.attname AS name, format_type(a.atttypid, NULL) AS kind": func(s *session, _ string, args []any) (*result, error) {
		return s.columns(args, pgKinds, "character varying", `pg_catalog."C"`)
	},
	"SELECT n.nspname FROM pg_class c": func(s *session, _ string, args []any) (*result, error) {
		t, err := s.named(args)
		if t == nil {
			return &result{columns: []string{"nspname"}}, err
		}
		return table1("nspname", []any{"public"})
	},
}

var pgKinds = map[int]string{
	kindText: "character varying", kindInt: "bigint", kindFloat: "double precision", kindBool: "boolean", kindTime: "timestamp with time zone",
}

func pgSession(s *session, _ string, _ []any) (*result, error) {
	run := s.db.started.Format(time.RFC3339Nano)
	return table1("pid,server,run,started,numbers", []any{s.id, fmt.Sprintf("10.0.0.%d:5432 7 00000001", s.db.server), run, s.started, true})
}

func pgStatus(s *session, _ string, args []any) (*result, error) {
	n, _ := strconv.ParseInt(fmt.Sprint(args[0]), 10, 64)
	switch t := s.db.statuses[n]; {
	case t == nil && n <= s.db.lastTx:
		return table1("pg_xact_status", []any{"aborted"})
	case t == nil:
		return nil, pgErr("22023", "transaction ID is in the future")
	case t.committed > 0:
		return table1("pg_xact_status", []any{"committed"})
	case t.ended:
		return table1("pg_xact_status", []any{"aborted"})
	}
	return table1("pg_xact_status", []any{"in progress"})
}

func pgTerminate(s *session, _ string, args []any) (*result, error) {
	id, _ := strconv.ParseInt(fmt.Sprint(args[0]), 10, 64)
	victim := s.db.sessionOf(id)
	if victim == nil || args[1] != nil && compare(args[1], victim.started.UTC().Round(time.Microsecond)) != 0 {
		return &result{columns: []string{"pg_terminate_backend"}}, nil
	}
	s.db.kill(victim, s.db.killedError())
	return table1("pg_terminate_backend", []any{true})
}
