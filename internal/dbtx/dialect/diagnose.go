package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/belaygo/belay/internal/doctor"
)

// diagnoseMySQL needs no right beyond a login: a user sees its own sessions and may end
// them.
func diagnoseMySQL(ctx context.Context, c *sql.Conn, s Session) (found []doctor.Finding, err error) {
	known, err := mysqlValues(ctx, c, `SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation',
		'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_storage_engine', 'binlog_format',
		'rpl_semi_sync_master_enabled', 'autocommit', 'completion_type')`)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	found = judgeMySQL(known)
	if s.Group && s.View == "" {
		found = append(found, doctor.DBOutcome.Found("the user", "it may not see the view of the group, so each COMMIT without an answer stays unknown").
			Fixed("GRANT SELECT ON performance_schema.replication_group_members, and on replication_group_member_stats"))
	}
	var sees bool
	if err := c.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d", s.ID)).Scan(&sees); err != nil {
		return found, fmt.Errorf("read the processes: %w", err)
	}
	if !sees {
		found = append(found, doctor.DBOutcome.Found("the session", "the server knows it under another number than %d, so the session of a COMMIT without an answer can't be found or ended", s.ID).
			Fixed("connect to the server without what gives sessions other numbers"))
	}
	return found, nil
}

// judgeMySQL returns the faults in a server's settings. A setting that the server does not name is
// reported as unchecked: the server may only resemble MySQL.
func judgeMySQL(known map[string]string) (found []doctor.Finding) {
	const byHand = "look at the setting by hand, or ask the provider"
	switch level := cmp.Or(known["transaction_isolation"], known["tx_isolation"]); level {
	case "REPEATABLE-READ":
	case "":
		found = append(found, doctor.DBIsolation.Unread("the session", "transaction_isolation", byHand))
	default:
		found = append(found, doctor.DBIsolation.Found("the session", "the isolation level is %s", level))
	}
	if known["autocommit"] == "OFF" {
		found = append(found, doctor.DBAutocommit.Found("the session", "autocommit is OFF: what the program writes outside of a transaction is not committed, and each read there leaves a transaction open"))
	}
	if value := known["completion_type"]; value == "CHAIN" || value == "RELEASE" {
		found = append(found, doctor.DBAutocommit.Found("the session", "completion_type = %s: a COMMIT leaves the connection in another transaction, or closes it", value))
	}
	durable := []string{"innodb_flush_log_at_trx_commit"}
	inside := known["binlog_storage_engine"] != "" // InnoDB has the binary log, since MariaDB 12.3
	if known["log_bin"] == "ON" && !inside {
		durable = append(durable, "sync_binlog")
	}
	if known["rpl_semi_sync_master_enabled"] == "ON" && inside {
		found = append(found, doctor.DBDurability.Found("the server", "with binlog_storage_engine = %s no commit waits for a replica, whatever rpl_semi_sync_master_enabled says", known["binlog_storage_engine"]).
			Fixed("keep the binary log in files where a replica is to have each commit"))
	}
	for _, name := range durable {
		switch value := known[name]; value {
		case "1":
		case "":
			found = append(found, doctor.DBDurability.Unread("the server", name, byHand))
		default:
			found = append(found, doctor.DBDurability.Found("the server", "%s = %s loses commits in a crash", name, value).Fixed("set %s = 1", name))
		}
	}
	if known["log_bin"] == "ON" && known["binlog_format"] == "STATEMENT" { // where there is no such setting, there is ROW alone
		found = append(found, doctor.DBBinlog.Found("the session", "with binlog_format = STATEMENT the outbox can't lease rows"))
	}
	return found
}

// diagnosePostgres looks for the rights by which the session of a COMMIT without an answer
// is ended, and for limits of the waits for a silent client or a slow statement.
func diagnosePostgres(ctx context.Context, c *sql.Conn, s Session) (found []doctor.Finding, err error) {
	var level, statement, idle string
	var ends bool
	err = c.QueryRowContext(ctx, `SELECT current_setting('default_transaction_isolation'), current_setting('statement_timeout'),
		current_setting('idle_in_transaction_session_timeout'),
		(SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc
			WHERE proname IN ('pg_terminate_backend', 'pg_logical_emit_message') AND pronamespace = 'pg_catalog'::regnamespace)`).
		Scan(&level, &statement, &idle, &ends)
	switch {
	case IsMissing(err):
		return nil, fmt.Errorf("it only resembles PostgreSQL: %w", err)
	case err != nil:
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	if level != "read committed" {
		found = append(found, doctor.DBIsolation.Found("the session", "default_transaction_isolation is %s", level))
	}
	if !ends || s.Run == "" {
		found = append(found, doctor.DBOutcome.Found("the user", "it may not identify the server or end its own sessions, so a COMMIT without an answer may stay unknown").
			Fixed("GRANT EXECUTE ON FUNCTION pg_terminate_backend, pg_logical_emit_message and pg_control_system to the service's role"))
	}
	for _, limit := range []struct{ name, value string }{{"statement_timeout", statement}, {"idle_in_transaction_session_timeout", idle}} {
		if limit.value == "0" {
			found = append(found, doctor.DBTimeouts.Found("the role", "%s is not set", limit.name).Fixed("ALTER ROLE ... SET %s = '30s'", limit.name))
		}
	}
	return found, nil
}
