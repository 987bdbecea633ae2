package sqlfront

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/pinned"
)

// whole is the operation's transaction, which the guard ends.
type whole struct{ t *Transaction }

// Commit refuses, and so does Rollback: what an operation returns decides. Both leave a
// *sql.Tx that can't go on, so the operation can't, either.
func (w whole) Commit() error   { return w.end("Commit") }
func (w whole) Rollback() error { return w.end("Rollback") }

func (w whole) end(name string) error {
	if w.t.isEnding() {
		return nil
	}
	err := fmt.Errorf("%w: %s: return from the operation instead", pinned.ErrTxControl, name)
	w.t.conn.Watcher.Poison(err)
	return err
}

// save is a transaction that was begun inside of the operation.
type save struct {
	c    *conn
	name string
}

// begin sets a savepoint.
func (c *conn) begin(ctx context.Context) (driver.Tx, error) {
	c.t.mu.Lock()
	c.t.seq++
	name := fmt.Sprintf("belay_tx_%d", c.t.seq)
	c.t.mu.Unlock()
	if err := c.send(ctx, "SAVEPOINT "+name); err != nil {
		return nil, err
	}
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.t.saves = append(c.t.saves, name)
	c.level = len(c.t.saves)
	return save{c, name}, nil
}

// Commit releases the savepoint.
func (s save) Commit() error { return s.end("RELEASE SAVEPOINT " + s.name) }

// Rollback undoes what came after the savepoint.
func (s save) Rollback() error {
	return s.end("ROLLBACK TO SAVEPOINT "+s.name, "RELEASE SAVEPOINT "+s.name)
}

func (s save) end(queries ...string) error {
	t := s.c.t
	t.mu.Lock()
	last := len(t.saves) > 0 && t.saves[len(t.saves)-1] == s.name
	ending := t.ending
	t.mu.Unlock()
	switch {
	case ending:
		return nil
	case !last:
		t.conn.Watcher.Poison(errOrder)
		return errOrder
	}
	for _, query := range queries {
		if err := s.c.send(context.Background(), query); err != nil {
			t.conn.Watcher.Poison(err)
			return err
		}
	}
	t.mu.Lock() // not before: until then the operation can't be committed, nor use another one
	defer t.mu.Unlock()
	t.saves = slices.DeleteFunc(t.saves, func(name string) bool { return name == s.name })
	return nil
}
