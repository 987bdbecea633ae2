package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// TestRowsThatDoNotCount: MySQL counts the rows that an UPDATE has changed, and a trigger may keep a
// row as it was: then Changed gets 0 though the row had the version. That is no failure of a lock, nor
// an old version.
func TestRowsThatDoNotCount(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 10})
		left := e.db.Statement.Quote("left")
		same := func(ctx context.Context, tx *sql.Tx) error {
			n, err := written(tx.ExecContext(ctx, "UPDATE stocks SET "+left+" = "+left+" WHERE id = 1 AND version = 1"))
			return guard.Changed(ctx, e.stockRow(1), 1, n, err)
		}
		err := e.DoSQL(bg, "stock:1", same, guard.Protects(e.stockRow(1)))
		keep := map[string][]string{
			"mysql": {"CREATE TRIGGER keeps BEFORE UPDATE ON stocks FOR EACH ROW SET NEW.version = OLD.version, NEW." + left + " = OLD." + left},
			"postgres": {
				"CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
				"CREATE TRIGGER keeps BEFORE UPDATE ON stocks FOR EACH ROW EXECUTE FUNCTION keeps()",
			},
			"sqlite": {"CREATE TRIGGER keeps BEFORE UPDATE ON stocks BEGIN SELECT RAISE(IGNORE); END"},
		}[e.db.Name()]
		for _, statement := range keep {
			wantNil(e.t, e.db.Exec(statement).Error)
		}
		kept := e.DoSQL(bg, "stock:1", func(ctx context.Context, _ *sql.Tx) error {
			return guard.UpdateRow(ctx, e.stockRow(1), 1, left+" = 3")
		}, guard.Protects(e.stockRow(1)))
		if e.db.Name() != "mysql" { // which counts the row as matched
			wantNil(e.t, err)
			err = kept
		}
		for _, err := range []error{err, kept} {
			if _, conflict := errors.AsType[*dbguard.ConflictError](err); !conflict || errors.Is(err, guard.ErrStale) || errors.Is(err, guard.ErrIntercepted) {
				e.t.Errorf("err = %v, want a conflict", err)
			}
		}
		if got := e.stock(1); got.Left != 10 || got.Version != 1 {
			e.t.Errorf("stock = %+v", got)
		}
		e.wantNoEvent()
	})
}
