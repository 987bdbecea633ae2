package pgxguard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/relay"
)

// TestErrorBehindAMessage: PostgreSQL has reported the transaction with the message, and executes the COMMIT
// as a ROLLBACK once a statement behind it has failed that Belay does not see.
func TestErrorBehindAMessage(t *testing.T) {
	s := newShop(t)
	wantNil(t, relay.Migrate(bg, s.db))
	fails := func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO orders (no, amount) VALUES ('1', 1)")
		return err
	}
	for name, then := range map[string]func(ctx context.Context, tx pgx.Tx, before *pgx.Conn, rows pgx.Rows) error{
		"Conn":             func(ctx context.Context, tx pgx.Tx, _ *pgx.Conn, _ pgx.Rows) error { return fails(ctx, tx.Conn()) },
		"Conn of before":   func(ctx context.Context, _ pgx.Tx, before *pgx.Conn, _ pgx.Rows) error { return fails(ctx, before) },
		"Conn of the rows": func(ctx context.Context, _ pgx.Tx, _ *pgx.Conn, rows pgx.Rows) error { return fails(ctx, rows.Conn()) },
		"Prepare": func(ctx context.Context, tx pgx.Tx, _ *pgx.Conn, _ pgx.Rows) error {
			_, err := tx.Prepare(ctx, "none", "SELECT none FROM orders")
			return err
		},
	} {
		err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
			wantNil(t, sells("1")(ctx, tx))
			rows, err := tx.Query(ctx, "SELECT 1")
			wantNil(t, err)
			rows.Close()
			var before *pgx.Conn
			if name == "Conn of before" {
				before = tx.Conn()
			}
			wantNil(t, guard.SendSQL(ctx, guard.Message{Topic: "sold", Body: []byte("1")}))
			if then(ctx, tx, before, rows) == nil {
				t.Errorf("%s: the statement has not failed", name)
			}
			return nil
		})
		if err == nil || s.count() != 0 {
			t.Errorf("%s: %v, and %d orders", name, err, s.count())
		}
	}
}

// A message leaves with the commit of its operation, or never. It is sent on the operation's own
// connection, and not while that reads rows.
func TestMessages(t *testing.T) {
	s := newShop(t)
	wantNil(t, relay.Migrate(bg, s.db))
	failed := errors.New("failed")
	for _, end := range []error{failed, nil} {
		err := s.do("order:1", func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders (no, amount) VALUES ('1', 1)"); err != nil {
				return err
			}
			if err := guard.SendSQL(ctx, guard.Message{Topic: "sold", Body: []byte("1")}); err != nil {
				return err
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Errorf("got %v, want %v", err, end)
		}
		var sent int
		wantNil(t, s.pool.QueryRow(bg, "SELECT COUNT(*) FROM belay_message WHERE message_key = 'order:1'").Scan(&sent))
		if sent != s.count() || sent != 1 && end == nil {
			t.Errorf("%d messages of %d orders", sent, s.count())
		}
	}
	err := s.do("order:2", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT generate_series(1, 1000)")
		if err != nil {
			return err
		}
		defer rows.Close()
		return guard.SendSQL(ctx, guard.Message{Topic: "sold"})
	})
	if err == nil {
		t.Error("a message is sent on a connection that reads rows")
	}
}
