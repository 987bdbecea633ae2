package claim

import (
	"bytes"
	"context"
	"fmt"

	"github.com/belaygo/belay/internal/sqldb"
)

// suspended is in the place of a claim's print while a statement runs that may commit the
// claim before the operation has ended. No print is that short.
var suspended = []byte{0}

// Suspend marks a claim, in its transaction: if it is committed now, the request has taken
// effect in part at most. Resume follows.
func Suspend(ctx context.Context, q querier, database string, request []byte) error {
	return setPrint(ctx, q, database, request, suspended)
}

// Resume gives a claim its print back.
func Resume(ctx context.Context, q querier, database string, request, sum []byte) error {
	return setPrint(ctx, q, database, request, sum)
}

func setPrint(ctx context.Context, q querier, database string, request, sum []byte) error {
	d, _ := sqldb.Of(database)
	if _, err := q.ExecContext(ctx, d.Rebind("UPDATE belay_once SET print = ? WHERE request = ?"), sum, request); err != nil {
		return fmt.Errorf("mark the claim: %w", err)
	}
	return nil
}

// Suspended reports whether the claim was committed before its operation had ended: a part
// of what the operation did may have taken effect.
func (r *Record) Suspended() bool { return r != nil && bytes.Equal(r.Print, suspended) }
