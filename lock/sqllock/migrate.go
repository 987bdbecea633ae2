package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/sqldb"
)

// Migrate creates the tables belay_lock, belay_done and belay_switch if they are not there. The
// statements are in the folder schema, for other tools of migration.
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
