package claim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
)

// mostRequests is how many requests one statement of Attempts names.
const mostRequests = 250

// Attempts returns the stamps of the claims of requests that are in the table, by request.
func Attempts(ctx context.Context, c sqldb.Conn, database string, requests [][]byte) (map[string]int64, error) {
	d, _ := sqldb.Of(database)
	found := make(map[string]int64, len(requests))
	for len(requests) > 0 {
		n := min(len(requests), mostRequests)
		args := make([]any, n)
		for i, request := range requests[:n] {
			args[i] = request
		}
		requests = requests[n:]
		query := d.Rebind("SELECT request, attempt FROM belay_once WHERE request IN (" + sqldb.List("?", ", ", n) + ")")
		err := sqldb.Query(ctx, c, query, args, func(scan sqldb.Scan) error {
			var request []byte
			var attempt int64
			err := scan(&request, &attempt)
			found[string(request)] = attempt
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read claims: %w", Explain(err))
		}
	}
	return found, nil
}

// Oldest returns the age of the oldest claim in the table, by the database's clock; 0 if there is
// none.
func Oldest(ctx context.Context, c sqldb.Conn, database string) (time.Duration, error) {
	d, _ := sqldb.Of(database)
	var seconds float64
	query := "SELECT " + d.Now(time.Second) + " - " + d.Epoch("created_at") + " FROM belay_once ORDER BY created_at LIMIT 1"
	err := c.QueryRowContext(ctx, query).Scan(&seconds)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read the oldest claim: %w", Explain(err))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
