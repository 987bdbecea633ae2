package dbtx

import (
	"context"
	"database/sql"
	"testing"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
)

// TestUseDuringTheLastStatement: a read of Belay's that another goroutine is about to send comes behind
// the statement that runs, and may fail: what that returns says nothing of the end. So may what a program
// sends that has the driver's connection.
func TestUseDuringTheLastStatement(t *testing.T) {
	for name, use := range map[string]func(c *pinned.Conn){
		"nobody":      nil,
		"Belay":       func(c *pinned.Conn) { c.Use() },
		"the program": func(c *pinned.Conn) { c.Lend() },
	} {
		asked := false
		tx := &Tx{conn: &pinned.Conn{Session: dialect.Session{Numbers: true}}}
		tx.dialect = dialect.Dialect{Aborts: true, ReadTransaction: func(_ context.Context, _ *sql.Conn, _ dialect.Session, write string, _ ...any) (dialect.Transaction, error) {
			if asked = write == ""; use != nil && !asked {
				use(tx.conn)
			}
			return dialect.Transaction{Number: "7", Own: true, Rows: 1}, nil
		}}
		if _, err := (last{tx}).ExecContext(t.Context(), "INSERT"); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.atEnd(t.Context()); err != nil || asked != (use != nil) {
			t.Errorf("used meanwhile by %s, and it was asked: %v, %v", name, asked, err)
		}
	}
}
