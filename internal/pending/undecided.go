package pending

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/requestkey"
	"github.com/belaygo/belay/internal/sqldb"
)

// Key returns the key of the request's lock.
func (l Listed) Key() string { return requestkey.OfSum(l.Operation, l.sum()) }

// ID returns the id that all calls of the request have: see once.Request.Downstream.
func (l Listed) ID() string { return requestkey.Downstream(l.sum(), l.Operation) }

func (l Listed) sum() (sum [sha256.Size]byte) {
	copy(sum[:], l.Request)
	return sum
}

// undecided is the condition of a row for which nobody calls any more, and that has no result.
func undecided(now string) string {
	return "answered = 0 AND lease_ms <= " + now + " AND until_ms <= " + now
}

// committed runs a query that reads what is committed, whatever the level of the session: the row of a
// reservation that runs has no times yet, and would be taken for undecided.
func committed(ctx context.Context, db sqldb.DB, query string, args []any, each func(scan sqldb.Scan) error) error {
	return db.ReadCommitted().Read(ctx, func(c sqldb.Conn) error { return sqldb.Query(ctx, c, query, args, each) })
}

// Undecided returns the requests that are undecided, the latest first, at most limit.
func Undecided(ctx context.Context, db sqldb.DB, limit int) (rows []Listed, err error) {
	query := "SELECT request, operation, since_ms, until_ms, tries FROM belay_pending WHERE " + undecided(db.Now(time.Millisecond)) +
		" ORDER BY until_ms DESC, request LIMIT ?"
	err = committed(ctx, db, query, []any{limit}, func(scan sqldb.Scan) error {
		r := Listed{Undecided: true}
		var since, until int64
		if err := scan(&r.Request, &r.Operation, &since, &until, &r.Tries); err != nil {
			return err
		}
		r.Since, r.Last = time.UnixMilli(since), time.UnixMilli(until)
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for undecided requests: %w", Explain(err))
	}
	return rows, nil
}
