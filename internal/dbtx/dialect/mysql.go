package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/sqlerr"
	"github.com/belaygo/belay/internal/wait"
)

// Numbers of MySQL's and MariaDB's errors.
const (
	erDupEntry         = 1062
	erDupEntryWithKey  = 1586
	erDupUnknownInIdx  = 1859
	erCheckRead        = 1020 // MariaDB: changed since the snapshot
	erLockDeadlock     = 1213
	erLockTableFull    = 1206
	erLockWaitTimeout  = 1205
	erLockNowait       = 3572
	erNoSuchThread     = 1094
	erKillDenied       = 1095
	erDuringCommit     = 1180 // with the number of an error of the engine
	erDuringRollback   = 1181 // with the number of an error of the engine
	erParse            = 1064
	erSchemaDenied     = 1044
	erUnknownColumn    = 1054
	erUnknownTable     = 1109
	erTableDenied      = 1142
	erColumnDenied     = 1143
	erNoSuchTable      = 1146
	erConCount         = 1040 // too many connections
	erUnknownCommand   = 1047 // by Galera, of a node that is not ready
	erServerShutdown   = 1053
	erConnectionKilled = 1927 // MariaDB
	erReadOnlyServer   = 1290
	erReadOnlyTx       = 1792
	erReadOnlyMode     = 1836
	erNoSavepoint      = 1305
	erEngine           = 1030 // with the number of an error of the engine
	erRolledBack       = 3101 // by group replication, at COMMIT
	erTableDefChanged  = 1412 // since the snapshot
	erOffline          = 3032 // offline_mode, as of a member that its group has put out
	erOfflineWhy       = 6400 // as erOffline, with the reason, since MySQL 9
	firstOfClients     = 2000 // no server has these, but a proxy reports what it met as a client
	lastOfClients      = 2999
	firstOfProxySQL    = 9000 // TiDB has these, too, for storage that it cannot reach
	lastOfProxySQL     = 9999
	erNoText           = 3854 // a statement in the list of processes has bytes that are no text

	tidbNoRetry       = 8002 // a conflict at COMMIT
	tidbCommitFailed  = 8022
	tidbWriteConflict = 9007
)

// isAbortedAtCommit reports that InnoDB found at COMMIT, before the group received the
// transaction, that it had to roll it back in favour of a certified one. Only the text
// has the engine's error.
func isAbortedAtCommit(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && e.Number == erDuringCommit && engineError(e) == 149
}

var number = regexp.MustCompile(`[0-9]+`)

// engineError returns the number of the engine's error, which only the text has: the first number
// in it, in whatever language lc_messages has chosen.
func engineError(e *mysql.MySQLError) int {
	n, _ := strconv.Atoi(number.FindString(e.Message))
	return n
}

// ErrUndone is the error of a transaction that the server has undone silently: see
// [Session.HoldsBack].
var ErrUndone = errors.New("dbguard: the server has undone the transaction in favour of another")

// isUndone reports that a transaction has lost its savepoints, on Galera all of them with
// itself: see Session.Yields.
func isUndone(err error) bool {
	if errors.Is(err, ErrUndone) {
		return true
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (e.Number == erEngine || e.Number == erDuringRollback) && engineError(e) == 153
}

// readMySQLSession does not use SELECT @@..., as the names differ between versions.
func readMySQLSession(ctx context.Context, c *sql.Conn) (Session, error) {
	read := time.Now().Round(0) // by the wall clock: the other one stands while this machine is suspended
	known, err := mysqlValues(ctx, c, `SHOW SESSION VARIABLES WHERE Variable_name IN
		('pseudo_thread_id', 'version', 'version_comment', 'tx_isolation', 'transaction_isolation', 'innodb_rollback_on_timeout',
		'innodb_snapshot_isolation', 'innodb_lock_wait_timeout', 'sql_mode', 'sql_select_limit', 'autocommit',
		'hostname', 'port', 'server_id', 'server_uuid', 'server_uid', 'gtid_domain_id', 'wsrep_node_name',
		'wsrep_on', 'wsrep_sync_wait', 'group_replication_consistency', 'group_replication_single_primary_mode',
		'group_replication_group_name', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')`)
	if err != nil {
		return Session{}, err
	}
	if err := checkRows(known); err != nil {
		return Session{}, err
	}
	var view string
	if known["group_replication_group_name"] != "" {
		if view, err = groupView(ctx, c); err != nil {
			return Session{}, err
		}
	}
	id, _ := strconv.ParseUint(known["pseudo_thread_id"], 10, 64)
	rollback := known["innodb_rollback_on_timeout"]
	level := cmp.Or(known["transaction_isolation"], known["tx_isolation"])
	return Session{
		ID:               id,
		Read:             read,
		Server:           mysqlServer(known),
		Family:           familyOfMySQL(known),
		Galera:           known["wsrep_on"] == "ON",
		Group:            known["group_replication_group_name"] != "",
		View:             view,
		SemiSync:         cmp.Or(known["rpl_semi_sync_source_enabled"], known["rpl_semi_sync_master_enabled"]) == "ON",
		Yields:           yieldsMySQL(known),
		Autocommit:       known["autocommit"] == "ON",
		Snapshot:         level == "REPEATABLE-READ",
		ReadsLock:        readsLock(level),
		TimeoutRollsBack: rollback == "ON" || rollback == "1",
		Strict:           strings.Contains(known["sql_mode"], "STRICT_"),
		EmptyIsNull:      strings.Contains(known["sql_mode"], "EMPTY_STRING_IS_NULL"),
		Grammar:          grammarOfMySQL(known["sql_mode"]),
		RefusesChanged:   known["innodb_snapshot_isolation"] == "ON",
		Behind:           behindMySQL(known),
		LockWait:         known["innodb_lock_wait_timeout"],
	}, nil
}

// readsLock reports whether a plain read of an isolation level locks rows, as that of SERIALIZABLE does.
func readsLock(level string) bool {
	switch level {
	case "REPEATABLE-READ", "READ-COMMITTED", "READ-UNCOMMITTED":
		return false
	}
	return true
}

// fewestRows is the least sql_select_limit with which Belay's reads are complete.
const fewestRows = 1000

// checkRows returns an error if the session is sent fewer rows than there are: the columns of an
// index would be missing, and some of its own variables.
func checkRows(known map[string]string) error {
	limit, err := strconv.ParseUint(known["sql_select_limit"], 10, 64)
	if known["version"] != "" && (err != nil || limit >= fewestRows) {
		return nil //nolint:nilerr // it has no such limit
	}
	return fmt.Errorf("the session is sent too few rows: set its sql_select_limit to %d or more", fewestRows)
}

// grammarOfMySQL returns how a server with a sql_mode reads quotes.
func grammarOfMySQL(mode string) sqltext.Grammar {
	switch {
	case strings.Contains(mode, "NO_BACKSLASH_ESCAPES"):
		return sqltext.MySQLPlain
	case strings.Contains(mode, "ANSI_QUOTES"):
		return sqltext.MySQLANSI
	}
	return sqltext.MySQL
}

// mysqlServer identifies a server by all of its names and ids: copies of one machine, such
// as containers of one image, share name and port. MySQL has a server_uuid, which a copy
// of the data may share, too.
func mysqlServer(known map[string]string) string {
	parts := []string{known["hostname"] + ":" + known["port"]}
	for _, name := range []string{"server_uuid", "server_id", "server_uid", "gtid_domain_id", "wsrep_node_name"} {
		if known[name] != "" {
			parts = append(parts, known[name])
		}
	}
	return strings.Join(parts, " ")
}

// mysqlValues returns the result of a SHOW of variables or of the status.
func mysqlValues(ctx context.Context, c *sql.Conn, query string) (map[string]string, error) {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	known := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		known[strings.ToLower(name)] = value
	}
	return known, rows.Err()
}

// behindMySQL reports whether a transaction may begin on a member of a cluster before it has
// another member's commit. With Galera the first bit of wsrep_sync_wait makes START
// TRANSACTION wait; group replication has levels, and EVENTUAL serves old rows even on a new
// primary with a backlog. A MySQL 8.0 has the level EVENTUAL by default, also where it is in no
// group.
func behindMySQL(known map[string]string) bool {
	waits, _ := strconv.ParseUint(known["wsrep_sync_wait"], 10, 64)
	if known["wsrep_on"] == "ON" && waits&1 == 0 {
		return true
	}
	if known["group_replication_group_name"] == "" {
		return false
	}
	switch known["group_replication_consistency"] {
	case "EVENTUAL":
		return true
	case "BEFORE_ON_PRIMARY_FAILOVER":
		return known["group_replication_single_primary_mode"] == "OFF"
	}
	return false
}

// yieldsMySQL reports whether a commit of another member of a group may undo a transaction
// here: where several take writes, and on a new primary that has not applied all.
func yieldsMySQL(known map[string]string) bool {
	return known["group_replication_group_name"] != "" &&
		(known["group_replication_single_primary_mode"] == "OFF" || known["group_replication_consistency"] == "EVENTUAL")
}

// restartedMySQL reports whether the server was started after the number of the session
// was read, which another session may have by now. The server counts in seconds; where
// these do not decide, the number of c does, as numbers are given in sequence. A pooler hands
// out old sessions, too: so the server has not been restarted if it has the session.
func restartedMySQL(ctx context.Context, c *sql.Conn, then, _ Session) (bool, error) {
	var name string
	var seconds, id uint64
	err := errors.Join(
		c.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Uptime'").Scan(&name, &seconds),
		c.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id))
	up, known := time.Duration(seconds)*time.Second, time.Since(then.Read)
	switch {
	case up+time.Second <= known:
		return true, err
	case up-time.Second > known:
		return false, err
	}
	if err != nil || id > then.ID {
		return false, err
	}
	var lives bool
	err = c.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) AS lives FROM information_schema.processlist WHERE id = %d", then.ID)).Scan(&lives)
	return !lives, err
}

// ErrStranger is returned by EndSession.
var ErrStranger = errors.New("the session is another client's by now")

// endMySQLSession kills a session that has been idle since some time between the begin of the
// transaction and its COMMIT, and waits until the server has no session of this ID. A session
// that has run anything else is another client's. A session in its COMMIT is only awaited: it
// may be about to wait for a replica, and the end of that wait would commit writes that no
// replica has. On MariaDB a soft KILL does not end that wait.
func endMySQLSession(ctx context.Context, c *sql.Conn, s Session) error {
	kill := "KILL %d"
	if s.Family == MariaDB {
		kill = "KILL SOFT %d"
	}
	for {
		var lives, sleeps, strange bool
		least, most := int64(time.Since(s.Sent).Seconds()), int64(time.Since(s.Begun).Seconds())
		err := c.QueryRowContext(ctx, fmt.Sprintf(`SELECT COUNT(*) AS lives, COALESCE(SUM(command = 'Sleep' AND time >= %[2]d), 0),
			COALESCE(SUM(time + 1 < %[2]d OR time > %[3]d + 2 OR id = CONNECTION_ID() OR LOWER(info) NOT LIKE 'commit%%'), 0)
			FROM information_schema.processlist WHERE id = %[1]d`, s.ID, least, most)).Scan(&lives, &sleeps, &strange)
		switch {
		case err != nil:
		case !lives:
			return nil
		case strange:
			return ErrStranger
		case sleeps:
			_, err = c.ExecContext(ctx, fmt.Sprintf(kill, s.ID))
		}
		if err == nil || sqlerr.IsMySQL(err, erNoSuchThread, erKillDenied, erNoText) { // another user's session cannot be killed: it ends in time
			err = wait.Sleep(ctx, PollInterval, nil)
		}
		if err != nil {
			return fmt.Errorf("end the old session: %w", err)
		}
	}
}

// awaitMySQLCommit waits for a COMMIT that has begun: InnoDB without a binary log shows a row
// and frees its lock before the log is flushed, and the session is in its COMMIT until then.
func awaitMySQLCommit(ctx context.Context, c *sql.Conn, s Session, pooled bool) error {
	of := fmt.Sprintf("id = %d", s.ID)
	if pooled {
		of = "TRUE"
	}
	for begun := time.Now(); ; {
		var commits bool
		since := int64(time.Since(begun).Seconds())
		err := c.QueryRowContext(ctx, fmt.Sprintf(`SELECT COUNT(*) AS commits FROM information_schema.processlist
			WHERE %s AND LOWER(info) LIKE 'commit%%' AND time + 1 >= %d`, of, since)).Scan(&commits)
		if err == nil && !commits {
			return nil
		}
		if err == nil || sqlerr.IsMySQL(err, erNoText) {
			err = wait.Sleep(ctx, PollInterval, nil)
		}
		if err != nil {
			return fmt.Errorf("wait for the COMMIT to be durable: %w", err)
		}
	}
}
