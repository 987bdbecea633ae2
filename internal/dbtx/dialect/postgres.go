package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/pgsync"
	"github.com/belaygo/belay/internal/sqlerr"
	"github.com/belaygo/belay/internal/wait"
)

// Codes of PostgreSQL's errors, and classes of them.
const (
	pgConnection      = "08"
	pgResources       = "53"
	pgOperator        = "57" // shut down, cancelled
	pgSystem          = "58"
	pgInternal        = "XX"
	pgUndefined       = "42" // also a name that the user may not see
	pgDenied          = "42501"
	pgUndefinedColumn = "42703"
	pgUndefinedTable  = "42P01"
	pgUndefinedObject = "42704" // such as an index

	pgUnique        = "23505"
	pgExclusion     = "23P01"
	pgSerialization = "40001"
	pgIncomplete    = "40003" // "statement completion unknown", of servers like CockroachDB
	pgDeadlock      = "40P01"
	pgLocked        = "55P03"
	pgConnections   = "53300" // too many
	pgUnsupported   = "0A000"
	pgUnprepared    = "55000" // by Aurora, of the position in the log
	pgOutside       = "25P01" // of a transaction
	pgTimeout       = "25P04" // of the transaction: it may end the session behind an executed COMMIT
)

// readPostgresSession identifies a server by its address, the system identifier and, on a primary,
// the timeline: a copy of it that was promoted has another. A crash of one process
// restarts the others but not the postmaster; the statistics start again at that time.
func readPostgresSession(ctx context.Context, c *sql.Conn) (Session, error) {
	s, version, isCitus := Session{Grammar: sqltext.Postgres}, "", false
	err := c.QueryRowContext(ctx, `SELECT pg_backend_pid(),
		format('%s:%s %s %s', host(inet_server_addr()), inet_server_port(), (SELECT system_identifier FROM pg_control_system()),
			CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END),
		format('%s %s', `+postgresStart+`, (SELECT extract(epoch FROM stats_reset) FROM pg_stat_bgwriter)),
		(SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),
		to_regproc('pg_current_xact_id_if_assigned') IS NOT NULL, current_setting('lock_timeout'),
		version(), to_regproc('citus_version') IS NOT NULL`).
		Scan(&s.ID, &s.Server, &s.Run, &s.Started, &s.Numbers, &s.LockWait, &version, &isCitus)
	plain := err == nil || sqlerr.IsPostgres(err, pgDenied, pgUnprepared)
	if sqlerr.IsPostgres(err, pgUndefined, pgUnsupported, pgUnprepared) { // it only resembles PostgreSQL, or the rights are few
		s = Session{Grammar: sqltext.Postgres}
		err = c.QueryRowContext(ctx, `SELECT pg_backend_pid(), format('%s:%s', host(inet_server_addr()), inet_server_port()),
			(SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()), current_setting('lock_timeout'), version()`).
			Scan(&s.ID, &s.Server, &s.Started, &s.LockWait, &version)
	}
	s.Family = familyOfPostgres(version, isCitus, plain)
	s.Numbers = s.Numbers && !s.Family.Resembles()
	return s, err
}

// postgresStart is when the server was started, in any time zone.
const postgresStart = "extract(epoch FROM pg_postmaster_start_time())"

// Defers reports whether the first statements of a transaction may be sent together: the server reports
// the number and the session of the transaction then, by TransactionQuery.
func (s Session) Defers() bool {
	return s.Numbers && s.Run != "" && s.LockWait != "" && !s.Proven().Resembles()
}

const postgresNumber = "coalesce(pg_current_xact_id_if_assigned()::text, '')"

// TransactionQuery is a query for what Transaction reads, where a session Defers. The transaction has a number from then
// on: it is about to write.
func (s Session) TransactionQuery() string {
	return "SELECT concat_ws(' ', pg_current_xact_id(), pg_backend_pid(), " + postgresStart + ")"
}

// Transaction returns what the server reports of a transaction of the session.
func (s Session) Transaction(text string) Transaction {
	number, session, _ := strings.Cut(text, " ")
	start, _, _ := strings.Cut(s.Run, " ")
	return Transaction{Number: number, Own: session == fmt.Sprint(s.ID, " ", start)}
}

// readPostgresTransaction reads the number of the transaction, and whether s is its session: a
// restarted server counts its sessions from the beginning.
func readPostgresTransaction(ctx context.Context, c *sql.Conn, s Session, write string, args ...any) (t Transaction, err error) {
	ofTransaction, ofServer := "''", "''"
	if s.Numbers {
		ofTransaction = postgresNumber
	}
	if s.Run != "" {
		ofServer = postgresStart + "::text"
	}
	query := "SELECT "
	if write != "" {
		query = write + " RETURNING "
	}
	rows, err := c.QueryContext(ctx, query+ofTransaction+", pg_backend_pid(), "+ofServer, args...)
	if err != nil {
		return t, err
	}
	defer rows.Close()
	var id uint64
	var start string
	for ; err == nil && rows.Next(); t.Rows++ {
		err = rows.Scan(&t.Number, &id, &start)
	}
	then, _, _ := strings.Cut(s.Run, " ")
	t.Own = id == s.ID && start == then
	return t, cmp.Or(err, rows.Err())
}

// endPostgresSession waits until the session has ended: one that is about to commit does
// so first, and a read does not wait for its inserted rows.
func endPostgresSession(ctx context.Context, c *sql.Conn, s Session) error {
	return endPostgres(ctx, c, "pid = $1 AND (backend_start = $2) IS NOT FALSE", s.ID, s.Started)
}

// endPostgresTransaction ends the session that has a transaction, and no other: behind a
// pooler the one that had it may be another client's by now.
func endPostgresTransaction(ctx context.Context, c *sql.Conn, number string) error {
	return endPostgres(ctx, c, "backend_xid = $1::xid8::xid", number)
}

// endPostgres kills the session that fits, and waits until none does. It spares a session
// that waits for the synchronous standby: its commit would be visible to others before the
// standby has it. A session that begins to wait at that moment is killed, so the message
// ensures that the standby has its commit.
func endPostgres(ctx context.Context, c *sql.Conn, fits string, args ...any) error {
	var err error
	for err == nil {
		var sent bool
		err = c.QueryRowContext(ctx, `SELECT CASE WHEN wait_event = 'SyncRep' THEN FALSE ELSE pg_terminate_backend(pid) END
			FROM pg_stat_activity WHERE `+fits, args...).Scan(&sent)
		if err == nil {
			err = wait.Sleep(ctx, PollInterval, nil)
		}
	}
	if errors.Is(err, sql.ErrNoRows) { // the session has ended
		_, err = c.ExecContext(ctx, pgsync.Message)
	}
	if err != nil {
		return fmt.Errorf("end the old session: %w", err)
	}
	return nil
}
