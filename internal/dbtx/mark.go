package dbtx

import (
	"fmt"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// mark sets the savepoint before the transaction's first write or lock on Galera, by which intact finds
// that a node has undone the transaction. Behind a pooler the session is known only within the transaction.
func (t *Tx) mark() error {
	if t.marked {
		return nil
	}
	err := t.exec(t.conn, "SAVEPOINT "+dialect.First)
	if err == nil && t.database.pooled.Load() {
		ctx, cancel := t.Detached()
		defer cancel()
		t.conn.Session.ID, err = dialect.SessionID(ctx, t.conn.SQL())
	}
	t.Learn(err)
	if err != nil {
		t.Poison(err)
		return fmt.Errorf("set a savepoint: %w", err)
	}
	t.marked = true
	return nil
}
