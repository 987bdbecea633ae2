package pending

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
)

// Decide stores the result that a person gives a request for which nobody calls any more. A repeat settles
// it. row is as List has returned it: the error is ErrTaken if the request was settled or decided
// meanwhile. A result that the row has is replaced.
func Decide(ctx context.Context, db sqldb.DB, row Listed, r Result) error {
	now := db.Now(time.Millisecond)
	query := `UPDATE belay_pending SET answered = ?, "body" = ? WHERE request = ? AND attempt = ? AND lease_ms <= ` + now + " AND until_ms <= " + now + " AND "
	if row.Answered {
		query += "answered <> 0"
	} else {
		query += "answered = 0"
	}
	if err := one(db.ReadCommitted().Exec(ctx, query, r.code(), r.Body, row.Request, row.Attempt)); err != nil {
		return fmt.Errorf("store the decision: %w", err)
	}
	return nil
}
