package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
)

// ErrNotSeeded is matched by the errors of CheckSeeded about tables that are missing
// or not complete.
var ErrNotSeeded = errors.New("the tables are not seeded")

// CheckSeeded makes sure that the tables of the given size are complete. db is the
// database of that size.
func CheckSeeded(ctx context.Context, db *sql.DB, rows int64) error {
	const (
		unknownDatabase = 1049
		unknownTable    = 1146
	)
	for _, t := range tables {
		var loaded int64
		var verified bool
		err := db.QueryRowContext(ctx, "SELECT loaded, verified FROM seed_progress WHERE name = ?", t.name).
			Scan(&loaded, &verified)
		refused, _ := errors.AsType[*mysql.MySQLError](err)
		switch {
		case errors.Is(err, sql.ErrNoRows),
			refused != nil && (refused.Number == unknownDatabase || refused.Number == unknownTable):
			return fmt.Errorf("%w: there is no %s with %d rows; run: go run ./benchmark seed -rows %d", ErrNotSeeded, t.name, rows, rows)
		case err != nil:
			return fmt.Errorf("read how far the tables are seeded: %w", err)
		case !verified:
			return fmt.Errorf("%w: %s has %d of %d rows; to go on, run: go run ./benchmark seed -rows %d", ErrNotSeeded, t.name, loaded, rows, rows)
		}
	}
	return nil
}
