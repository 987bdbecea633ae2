package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

// losesMySQL looks for semi-synchronous replication that gives its replica up within an hour,
// or that shows a commit to others before the replica has it. MySQL has renamed its settings.
func losesMySQL(ctx context.Context, c *sql.Conn) (why, fix string, err error) {
	known, err := mysqlValues(ctx, c, "SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%'")
	if err != nil {
		return "", "", fmt.Errorf("read the settings of replication: %w", err)
	}
	for _, role := range []string{"rpl_semi_sync_master_", "rpl_semi_sync_source_"} {
		timeout, _ := strconv.ParseInt(known[role+"timeout"], 10, 64) // the greatest number if it is greater
		switch {
		case known[role+"enabled"] != "ON":
		case known[role+"wait_point"] != "AFTER_SYNC":
			return fmt.Sprintf("%swait_point = %s shows commits that are lost when the replica is promoted", role, known[role+"wait_point"]), "set it to AFTER_SYNC", nil
		case timeout < time.Hour.Milliseconds():
			return fmt.Sprintf("%[1]stimeout = %[2]d loses commits when the replica is promoted after %[2]d ms without it", role, timeout), "set it to some days", nil
		}
	}
	return "", "", nil
}

// losesPostgres looks for settings under which PostgreSQL acknowledges a commit before its
// disk, or the standby that it names, has it.
func losesPostgres(ctx context.Context, c *sql.Conn) (why, fix string, err error) {
	var commit, fsync string
	var standby bool
	err = c.QueryRowContext(ctx, `SELECT coalesce(current_setting('synchronous_commit', true), ''), coalesce(current_setting('fsync', true), ''),
		coalesce(current_setting('synchronous_standby_names', true), '') <> ''`).Scan(&commit, &fsync, &standby)
	switch {
	case IsMissing(err): // it only resembles PostgreSQL
		return "", "", nil
	case err != nil:
		return "", "", fmt.Errorf("read the settings of commits: %w", err)
	case fsync == "off":
		return "fsync = off loses commits when the machine dies", "set fsync = on", nil
	case commit == "off":
		return "synchronous_commit = off loses commits when the server dies", "set synchronous_commit = on", nil
	case commit == "local" && standby:
		return "synchronous_commit = local loses commits when the standby is promoted", "set synchronous_commit = on", nil
	}
	return "", "", nil
}
