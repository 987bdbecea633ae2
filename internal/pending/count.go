package pending

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
)

// maxCount bounds the rows that are counted.
const maxCount = 10_000

// A Backlog counts the requests that are pending, by the database's clock. If there are more than
// 10,000, it is about the 10,000 oldest.
type Backlog struct {
	Table           string        // with its database
	Pending         int           // requests, with those that are undecided
	Oldest          time.Duration // age of the oldest that is not undecided, 0 if there is none
	Undecided       int           // requests for which nobody calls any more
	OldestUndecided time.Duration // since when the first of them is undecided
}

// Count counts what is pending. It reads at most 10,000 rows.
func Count(ctx context.Context, db sqldb.DB) (Backlog, error) {
	now := db.Now(time.Millisecond)
	query := "SELECT COUNT(*), COALESCE(" + now + " - MIN(CASE WHEN undecided = 0 THEN since_ms END), 0), COUNT(CASE WHEN undecided = 1 THEN 1 END), COALESCE(" +
		now + " - MIN(CASE WHEN undecided = 1 THEN until_ms END), 0) FROM (SELECT since_ms, until_ms, CASE WHEN " + undecided(now) +
		" THEN 1 ELSE 0 END AS undecided FROM belay_pending ORDER BY since_ms LIMIT ?) AS counted"
	var b Backlog
	var oldest, first int64
	err := committed(ctx, db, query, []any{maxCount}, func(scan sqldb.Scan) error { return scan(&b.Pending, &oldest, &b.Undecided, &first) })
	if err == nil {
		b.Table, err = name(ctx, db)
	}
	if err != nil {
		return Backlog{}, fmt.Errorf("count what is pending: %w", Explain(err))
	}
	b.Oldest, b.OldestUndecided = millis(max(oldest, 0)), millis(max(first, 0))
	return b, nil
}

// name returns the name of the table, with its database.
func name(ctx context.Context, db sqldb.DB) (string, error) {
	in := map[string]string{
		"mysql":    "SELECT COALESCE(CONCAT(DATABASE(), '.'), '')",
		"postgres": "SELECT concat(current_database(), '.', current_schema(), '.')",
	}[db.Name]
	if in == "" {
		return table, nil
	}
	var database string
	err := db.QueryRow(ctx, in, nil, &database)
	return database + table, err
}
