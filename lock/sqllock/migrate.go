package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/sqldb"
)

// Schema returns the statements that create the tables belay_lock, belay_done and belay_switch, for
// other tools of migration. It is empty for an unknown dialect.
func Schema(d Dialect) string {
	known, err := dialectOf(d)
	if err != nil {
		return ""
	}
	return known.Schema(schemas)
}

// Migrate creates the tables of Schema if they are not there.
func Migrate(ctx context.Context, pool *sql.DB, d Dialect) error {
	if pool == nil {
		return errors.New("sqllock: pool is nil")
	}
	known, err := dialectOf(d)
	if err != nil {
		return err
	}
	if err := sqldb.New(pool, known.Dialect).Migrate(ctx, known.Schema(schemas)); err != nil {
		return fmt.Errorf("sqllock: create tables: %w", err)
	}
	return nil
}
