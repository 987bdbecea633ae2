package promises_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// TestSpellingsOfOneRow: the usual collations ignore case, and keys don't. Two
// callers with two locks meet in one row, and neither lock has failed.
func TestSpellingsOfOneRow(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		other := e.Peer(e.t, e.open())
		e.wantConflict(e.Do(bg, "order:case-1", func(ctx context.Context, tx *gorm.DB) error {
			if err := other.Apply(bg, "order:CASE-1", guard.Insert(&Order{No: "CASE-1"})); err != nil {
				return err
			}
			return guard.Insert(&Order{No: "case-1"}).Run(ctx, tx)
		}))
		e.wantConflict(e.Apply(bg, "order:case-1", guard.Insert(&Order{No: "case-1"})))
		wantIs(e.t, e.Apply(bg, "order:CASE-1", guard.Insert(&Order{No: "CASE-1"})), guard.ErrDuplicate)
		e.wantNoEvent()
	})
}
