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
func (w whole) Commit() error   { return w.t.Refuse("Commit") }
func (w whole) Rollback() error { return w.t.Refuse("Rollback") }

// Refuse returns the error of a call that would end the operation's transaction, which can't be
// committed then. It returns none while the guard ends it.
func (t *Transaction) Refuse(call string) error {
	if t.Ending() {
		return nil
	}
	err := fmt.Errorf("%w: %s: return from the operation instead", pinned.ErrTxControl, call)
	t.conn.Watcher.Poison(err)
	return err
}

// A Savepoint is a transaction that was begun inside of the operation.
type Savepoint struct {
	t     *Transaction
	name  string
	level int // from 1
}

// Save sets a savepoint by send, which sends a statement.
func (t *Transaction) Save(send func(query string) error) (*Savepoint, error) {
	t.mu.Lock()
	t.seq++
	name := fmt.Sprintf("belay_tx_%d", t.seq)
	t.mu.Unlock()
	if err := send("SAVEPOINT " + name); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saves = append(t.saves, name)
	return &Savepoint{t, name, len(t.saves)}, nil
}

// Release keeps what came after the savepoint.
func (s *Savepoint) Release(send func(query string) error) error {
	return s.end(send, "RELEASE SAVEPOINT "+s.name)
}

// Undo undoes what came after the savepoint.
func (s *Savepoint) Undo(send func(query string) error) error {
	return s.end(send, "ROLLBACK TO SAVEPOINT "+s.name, "RELEASE SAVEPOINT "+s.name)
}

func (s *Savepoint) end(send func(query string) error, queries ...string) error {
	t := s.t
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
		if err := send(query); err != nil {
			t.conn.Watcher.Poison(err)
			return err
		}
	}
	t.mu.Lock() // not before: until then the operation can't be committed, nor use another one
	defer t.mu.Unlock()
	t.saves = slices.DeleteFunc(t.saves, func(name string) bool { return name == s.name })
	return nil
}

// Innermost returns an error if a statement of a transaction is not one of the innermost
// transaction. s is nil for one that was not begun inside of the operation.
func (t *Transaction) Innermost(s *Savepoint) error {
	level := 0
	if s != nil {
		level = s.level
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if level != len(t.saves) {
		return errNested
	}
	return nil
}

// save is a savepoint of a connection of a handle.
type save struct {
	c *conn
	s *Savepoint
}

// begin sets a savepoint.
func (c *conn) begin(ctx context.Context) (driver.Tx, error) {
	s, err := c.t.Save(func(query string) error { return c.send(ctx, query) })
	if err != nil {
		return nil, err
	}
	c.save = s
	return save{c, s}, nil
}

// Commit implements driver.Tx.
func (s save) Commit() error { return s.s.Release(s.send) }

// Rollback implements driver.Tx.
func (s save) Rollback() error { return s.s.Undo(s.send) }

func (s save) send(query string) error { return s.c.send(context.Background(), query) }
