package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Schema returns the statements that create the tables belay_lock, belay_done and belay_switch, for
// other tools of migration. It is empty for an unknown dialect.
func Schema(d Dialect) string { return dialects[d].schema }

// Migrate creates the tables of Schema if they are not there.
func Migrate(ctx context.Context, pool *sql.DB, d Dialect) error {
	if pool == nil {
		return errors.New("sqllock: pool is nil")
	}
	known, err := dialectOf(d)
	if err != nil {
		return err
	}
	for statement := range strings.SplitSeq(known.schema, ";\n") {
		if _, err = pool.ExecContext(ctx, statement); err != nil && ctx.Err() == nil {
			// On PostgreSQL two processes that create it at once disturb each other.
			_, err = pool.ExecContext(ctx, statement)
		}
		if err != nil {
			return fmt.Errorf("sqllock: create tables: %w", err)
		}
	}
	return nil
}
