package once

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
)

// Rows are deleted by the primary key: a range of an index would lock the gaps in which others
// insert. So would a transaction at REPEATABLE READ, those of rows that another purger has deleted.

// deleteAnswers deletes those of the answers that are older than keep.
func (t tables) deleteAnswers(ctx context.Context, keep time.Duration, requests []any) (int64, error) {
	res, err := t.db.ReadCommitted().Exec(ctx, "DELETE FROM belay_answer WHERE "+t.older+in(requests), olderThan(keep, requests)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// deleteClaims deletes those of the claims that are older than keep, and with them their answers,
// which may be younger, in one transaction: a claim that has outlived a refusal would tell a repeat
// that the request has taken effect, and an answer that has outlived its claim would be lost.
//
// A process that is paused before its COMMIT holds the locks of the batch until the server ends its
// session. Until then the batches of other purgers with these rows fail, and a repeat of one of these
// requests, which is older than keep, waits and gets guard.ErrBusy. No other request waits.
func (t tables) deleteClaims(ctx context.Context, keep time.Duration, requests []any) (n int64, err error) {
	err = t.db.ReadCommitted().InTx(ctx, func(c sqldb.Conn) error {
		res, err := c.ExecContext(ctx, "DELETE FROM belay_once WHERE "+t.older+in(requests), olderThan(keep, requests)...)
		if err != nil {
			return err
		}
		if n, err = res.RowsAffected(); err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, "DELETE FROM belay_answer WHERE "+unclaimed+in(requests), requests...)
		return err
	})
	return n, err
}

// unclaimed is the condition that an answer has no claim. Only a claim that another caller has
// made since is still there.
const unclaimed = "NOT EXISTS (SELECT 1 FROM belay_once WHERE belay_once.request = belay_answer.request)"

func in(requests []any) string {
	return " AND request IN (" + sqldb.List("?", ", ", len(requests)) + ")"
}

func olderThan(keep time.Duration, requests []any) []any {
	return append([]any{keep.Seconds()}, requests...)
}
