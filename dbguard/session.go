package dbguard

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A session is what the server says of one of its connections.
type session struct {
	id               uint64       // for KILL
	server           string       // where the number means something; the same after a restart
	asked            time.Time    // on MySQL, when it had its number
	run              string       // on PostgreSQL, of the server: another after a restart or a crash
	started          sql.NullTime // on PostgreSQL, by the server's clock
	numbers          bool         // PostgreSQL 13 and newer know the number of a transaction
	mariaDB          bool
	snapshot         bool // the transaction has one, which no other's commit changes
	strict           bool // a value that does not fit is refused
	refusesChanged   bool // a row that changed since the snapshot is not written, nor locked
	timeoutRollsBack bool // a lock wait that takes too long undoes the transaction
}

// sessions remembers the sessions of a pool by the driver's connections, so that each is
// read once in its life and not in each transaction.
type sessions struct {
	mu    sync.Mutex
	known map[any]session
}

func (s *sessions) of(ctx context.Context, pool *sql.DB, c *sql.Conn, d dialect) (session, error) {
	if d.ask == nil {
		return session{snapshot: true}, nil
	}
	var key any
	if err := c.Raw(func(conn any) error { key = conn; return nil }); err != nil {
		return session{}, err
	}
	s.mu.Lock()
	found, ok := s.known[key]
	s.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := d.ask(ctx, c)
	if err != nil {
		return session{}, fmt.Errorf("ask for the session: %w", err)
	}
	if reflect.TypeOf(key).Kind() == reflect.Pointer { // anything else need not be comparable
		s.remember(key, found, pool.Stats().OpenConnections)
	}
	return found, nil
}

// remember forgets all when there are more than the open ones, as it does not know which
// of them have been closed.
func (s *sessions) remember(key any, found session, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) > 2*open+8 {
		s.known = make(map[any]session)
	}
	s.known[key] = found
}

// forget forgets all sessions, so that each is read again.
func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = nil
}

// askMySQL does not use SELECT @@..., as the names differ between versions.
func askMySQL(ctx context.Context, c *sql.Conn) (session, error) {
	asked := time.Now().Round(0) // by the wall clock: the other one stands while this machine is suspended
	rows, err := c.QueryContext(ctx, `SHOW SESSION VARIABLES WHERE Variable_name IN
		('pseudo_thread_id', 'version', 'tx_isolation', 'transaction_isolation', 'innodb_rollback_on_timeout',
		'innodb_snapshot_isolation', 'sql_mode', 'hostname', 'port', 'server_uuid')`)
	if err != nil {
		return session{}, err
	}
	defer func() { _ = rows.Close() }()
	known := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return session{}, err
		}
		known[strings.ToLower(name)] = value
	}
	id, _ := strconv.ParseUint(known["pseudo_thread_id"], 10, 64)
	rollback := known["innodb_rollback_on_timeout"]
	return session{
		id:               id,
		asked:            asked,
		server:           strings.TrimSpace(known["hostname"] + ":" + known["port"] + " " + known["server_uuid"]),
		mariaDB:          strings.Contains(known["version"], "MariaDB"),
		snapshot:         cmp.Or(known["transaction_isolation"], known["tx_isolation"]) == "REPEATABLE-READ",
		timeoutRollsBack: rollback == "ON" || rollback == "1",
		strict:           strings.Contains(known["sql_mode"], "STRICT_"),
		refusesChanged:   known["innodb_snapshot_isolation"] == "ON",
	}, rows.Err()
}

// askPostgres identifies a server by its address, the system identifier and, on a primary,
// the timeline: a copy of it that was promoted has another. A crash of one process
// restarts the others but not the postmaster; the statistics begin anew then.
func askPostgres(ctx context.Context, c *sql.Conn) (session, error) {
	s, err := askAllOfPostgres(ctx, c)
	if code := postgresCode(err); strings.HasPrefix(code, "42") || code == "0A000" { // it only resembles PostgreSQL, or the rights are few
		s = session{}
		err = c.QueryRowContext(ctx, `SELECT pg_backend_pid(), format('%s:%s', host(inet_server_addr()), inet_server_port()),
			(SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())`).Scan(&s.id, &s.server, &s.started)
	}
	return s, err
}

func askAllOfPostgres(ctx context.Context, c *sql.Conn) (session, error) {
	var s session
	err := c.QueryRowContext(ctx, `SELECT pg_backend_pid(),
		format('%s:%s %s %s', host(inet_server_addr()), inet_server_port(), (SELECT system_identifier FROM pg_control_system()),
			CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END),
		format('%s %s', pg_postmaster_start_time(), (SELECT stats_reset FROM pg_stat_bgwriter)),
		(SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),
		to_regproc('pg_current_xact_id_if_assigned') IS NOT NULL`).
		Scan(&s.id, &s.server, &s.run, &s.started, &s.numbers)
	return s, err
}

// killMySQL ends a session and waits until the server has none of its number: InnoDB
// without a binary log shows a row and frees its lock before the log is flushed, but
// the session stays until then. A session that waits for a replica is left alone: to
// end that wait would commit what no replica has. A KILL that comes before that wait
// still ends it.
func killMySQL(ctx context.Context, c *sql.Conn, s session) error {
	restarted, err := restartedMySQL(ctx, c, s, s)
	for err == nil && !restarted {
		var replicating bool
		err = c.QueryRowContext(ctx, fmt.Sprintf(`SELECT COUNT(*) FROM information_schema.processlist
			WHERE id = %d AND state LIKE '%%semi-sync ACK%%'`, s.id)).Scan(&replicating)
		if err == nil && !replicating {
			_, err = c.ExecContext(ctx, fmt.Sprintf("KILL %d", s.id))
		}
		switch mysqlNumber(err) {
		case erNoSuchThread:
			return nil
		case erKillDenied: // another user's by now: it ends by itself
			err = nil
		}
		if err == nil {
			err = pause(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("end the old session: %w", err)
	}
	return nil
}

// restartedMySQL reports whether the server was started after the session was asked
// for its number, which another may have by now. The server counts in seconds; where
// these do not tell, the number of c does, as numbers are given in sequence.
func restartedMySQL(ctx context.Context, c *sql.Conn, then, _ session) (bool, error) {
	var name string
	var seconds, id uint64
	err := errors.Join(
		c.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Uptime'").Scan(&name, &seconds),
		c.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id))
	up, known := time.Duration(seconds)*time.Second, time.Since(then.asked)
	switch {
	case up+time.Second <= known:
		return true, err
	case up-time.Second > known:
		return false, err
	}
	return id <= then.id, err
}

// restartedPostgres reports whether the server crashed or was restarted in between.
func restartedPostgres(_ context.Context, _ *sql.Conn, then, now session) (bool, error) {
	return then.run != now.run, nil
}

// killPostgres waits until the session is gone: one that is about to commit does so
// first, and a read does not wait for what it has inserted. What it has committed may
// not have reached a synchronous standby, since it was cancelled or ended while it
// waited for that; a message of its own in the log does not come back before.
func killPostgres(ctx context.Context, c *sql.Conn, s session) error {
	err := endPostgres(ctx, c, s)
	if err == nil {
		_, err = c.ExecContext(ctx, "SELECT pg_logical_emit_message(true, 'belay', '')")
	}
	if err != nil {
		return fmt.Errorf("end the old session: %w", err)
	}
	return nil
}

func endPostgres(ctx context.Context, c *sql.Conn, s session) error {
	for {
		var told bool
		err := c.QueryRowContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE pid = $1 AND (backend_start = $2) IS NOT FALSE`, s.id, s.started).Scan(&told)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = pause(ctx)
		}
		if err != nil {
			return err
		}
	}
}
