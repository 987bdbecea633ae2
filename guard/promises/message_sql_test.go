package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// TestSendSQL: an operation that writes SQL sends as one with gorm does.
func TestSendSQL(t *testing.T) {
	each(t, func(e *env) {
		insert := "INSERT INTO orders (no, amount) VALUES ('a', 1)"
		wantIs(e.t, e.DoSQL(bg, "k", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, insert)
			return errors.Join(err, guard.SendSQL(ctx, note("a")), errSoldOut)
		}), errSoldOut)
		e.wantSent()
		wantNil(e.t, e.DoSQL(bg, "k", func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, insert); err != nil {
				return err
			}
			nested, err := e.Pool().BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			wantNil(e.t, guard.SendSQL(ctx, note("b")))
			wantNil(e.t, nested.Rollback())
			return guard.SendSQL(ctx, note("c"), note("d"))
		}))
		e.wantSent("c", "d")
		_, err := guard.OnceSQL(bg, e.Guard.Guard, request("1"), func(ctx context.Context, _ *sql.Tx) (string, error) {
			return "", errors.Join(guard.SendSQL(ctx, note("e")), guard.Refuse("no", note("f")))
		})
		wantNil(e.t, err)
		e.wantSent("c", "d", "f")
		wantIs(e.t, guard.SendSQL(bg, note("g")), dbguard.ErrOutside)
	})
}

// TestSendSQLWhileRowsAreOpen: it is refused, and may be made afterwards.
func TestSendSQLWhileRowsAreOpen(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "a"}, &Order{No: "b"})
		wantNil(e.t, e.DoSQL(bg, "k", func(ctx context.Context, tx *sql.Tx) error {
			rows, err := tx.QueryContext(ctx, "SELECT no FROM orders")
			if err != nil {
				return err
			}
			defer rows.Close()
			rows.Next()
			if err := guard.SendSQL(ctx, note("a")); err == nil {
				e.t.Error("a message was sent while rows were open")
			}
			return errors.Join(rows.Close(), rows.Err(), guard.SendSQL(ctx, note("b")))
		}))
		e.wantSent("b")
	})
}
