package pending

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/rowversion"
	"github.com/belaygo/belay/internal/sqldb"
)

// Decide stores the result that a person gives a request for which nobody calls any more. A repeat settles
// it. row is as List has returned it: the error is ErrTaken if the request was settled or decided
// meanwhile. A result that the row has is replaced: the row gets another attempt, so that nobody who has
// read the old result settles it.
func Decide(ctx context.Context, db sqldb.DB, row Listed, r Result) error {
	attempt := row.Attempt // a call that returns late still settles the service's own answer
	condition := undecided(db.Now(time.Millisecond))
	if row.Answered { // nobody calls
		attempt, condition = int64(rowversion.RandomStamp()), "answered <> 0"
	}
	query := `UPDATE belay_pending SET attempt = ?, answered = ?, "body" = ? WHERE request = ? AND attempt = ? AND ` + condition
	if err := one(db.ReadCommitted().Exec(ctx, query, attempt, r.code(), r.Body, row.Request, row.Attempt)); err != nil {
		return fmt.Errorf("store the decision: %w", err)
	}
	return nil
}
