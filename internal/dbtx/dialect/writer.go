package dialect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/belaygo/belay/internal/sqlconn"
)

// errNoWriter is returned by Dialect.Writer.
var errNoWriter = errors.New("the server takes no writes now")

// mysqlWriter reads the setting that a failover switches and, on a member of a cluster,
// whether it belongs to the majority.
func mysqlWriter(ctx context.Context, c *sql.Conn, s Session) error {
	known, err := mysqlValues(ctx, c, `SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only', 'innodb_read_only')`)
	if err == nil {
		err = readOnly(known)
	}
	switch {
	case err == nil && s.Galera:
		err = galeraWriter(ctx, c)
	case err == nil && s.Group:
		err = groupWriter(ctx, c)
	}
	return notAsked(err)
}

// readOnly returns an error if one of the variables is on. TiDB has a 0 in one of them.
func readOnly(known map[string]string) error {
	for name, value := range known {
		if value != "OFF" && value != "0" {
			return fmt.Errorf("%w: %s = %s", errNoWriter, name, value)
		}
	}
	return nil
}

func galeraWriter(ctx context.Context, c *sql.Conn) error {
	known, err := mysqlValues(ctx, c, `SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_ready')`)
	if status, ready := known["wsrep_cluster_status"], known["wsrep_ready"]; err == nil && (status != "Primary" || ready != "ON") {
		err = fmt.Errorf("%w: wsrep_cluster_status = %s, wsrep_ready = %s", errNoWriter, status, ready)
	}
	return err
}

// catchUpMySQL: a node of Galera that gave up on a COMMIT when it lost the others may come back
// before it has applied that COMMIT, which they have put in order.
func catchUpMySQL(ctx context.Context, c *sql.Conn, s Session) error {
	if !s.Galera {
		return nil
	}
	await := syncMySQL
	if s.Family == MariaDB {
		await = syncMariaDB
	}
	if err := await(ctx, c, s); err != nil {
		return fmt.Errorf("wait for what the cluster has committed: %w", err)
	}
	return nil
}

// errElsewhere is returned by a Dialect.CatchUp that was executed by another server than the one that
// had the transaction, or in another session than its setting, as behind a proxy that sends a SELECT to
// a replica.
var errElsewhere = errors.New("the wait was at another server, as behind a proxy that sends reads elsewhere")

// The read that waits also reports where it did.
const where = "@@hostname, @@port, @@server_id, @@wsrep_node_name, @@SESSION.wsrep_sync_wait & 1"

func syncMariaDB(ctx context.Context, c *sql.Conn, s Session) error {
	return s.waitedAt(c.QueryRowContext(ctx, "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT "+where))
}

// syncMySQL is for a Galera of MySQL's, as Percona's, which has no setting for one statement.
func syncMySQL(ctx context.Context, c *sql.Conn, s Session) error {
	var was int
	if err := c.QueryRowContext(ctx, "SELECT @@SESSION.wsrep_sync_wait").Scan(&was); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "SET SESSION wsrep_sync_wait = 1"); err != nil {
		return err
	}
	err := s.waitedAt(c.QueryRowContext(ctx, "SELECT "+where))
	_, restored := c.ExecContext(ctx, fmt.Sprintf("SET SESSION wsrep_sync_wait = %d", was))
	if restored != nil || errors.Is(err, errElsewhere) { // the pool must not keep the setting
		sqlconn.Discard(c)
	}
	return errors.Join(err, restored)
}

// waitedAt returns an error unless a read of where has waited, at the server of the session.
func (s Session) waitedAt(read *sql.Row) error {
	var host, port, id, node string
	var waited bool
	if err := read.Scan(&host, &port, &id, &node, &waited); err != nil {
		return err
	}
	for _, name := range []string{host + ":" + port, id, node} {
		waited = waited && (name == "" || strings.Contains(" "+s.Server+" ", " "+name+" "))
	}
	if !waited {
		return errElsewhere
	}
	return nil
}

// groupWriter: the primary of a group does not become read-only when it has lost sight of the
// others, and after a restart it may take writes before it is a member again, or without.
func groupWriter(ctx context.Context, c *sql.Conn) error {
	var online, majority bool
	err := c.QueryRowContext(ctx, `SELECT COALESCE(SUM(member_state = 'ONLINE' AND member_id = @@server_uuid), 0) = 1,
		COALESCE(2 * SUM(member_state <> 'UNREACHABLE') > COUNT(*), FALSE)
		FROM performance_schema.replication_group_members`).Scan(&online, &majority)
	if err == nil && (!online || !majority) {
		err = fmt.Errorf("%w: it is no member of its group's majority", errNoWriter)
	}
	return err
}

// postgresWriter: a standby shows what the primary had committed some time ago.
func postgresWriter(ctx context.Context, c *sql.Conn, _ Session) error {
	var standby bool
	err := c.QueryRowContext(ctx, "SELECT pg_is_in_recovery()").Scan(&standby)
	if err == nil && standby {
		err = fmt.Errorf("%w: it is a standby", errNoWriter)
	}
	return notAsked(err)
}

// notAsked adds the failed query to err.
func notAsked(err error) error {
	if err != nil && !errors.Is(err, errNoWriter) {
		return fmt.Errorf("ask whether the server takes writes: %w", err)
	}
	return err
}
