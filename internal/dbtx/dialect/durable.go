package dialect

import (
	"context"
	"database/sql"
	"fmt"
)

// losesPostgres looks for settings under which PostgreSQL acknowledges a commit before its
// disk, or the standby that it names, has it.
func losesPostgres(ctx context.Context, c *sql.Conn) (string, error) {
	var commit, fsync string
	var standby bool
	err := c.QueryRowContext(ctx, `SELECT coalesce(current_setting('synchronous_commit', true), ''), coalesce(current_setting('fsync', true), ''),
		coalesce(current_setting('synchronous_standby_names', true), '') <> ''`).Scan(&commit, &fsync, &standby)
	switch {
	case isPostgres(err, "42", "0A000"): // it only resembles PostgreSQL
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the settings of commits: %w", err)
	case fsync == "off":
		return "fsync = off loses commits when the machine dies: set fsync = on", nil
	case commit == "off":
		return "synchronous_commit = off loses commits when the server dies: set synchronous_commit = on", nil
	case commit == "local" && standby:
		return "synchronous_commit = local loses commits when the standby is promoted: set synchronous_commit = on", nil
	}
	return "", nil
}
