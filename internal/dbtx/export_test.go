package dbtx

import (
	"context"
	"time"
)

// ByRows has the outcome of a commit be found in the rows, as on a PostgreSQL before 13.
func (t *Tx) ByRows() { t.conn.Session.Numbers = false }

// Number is the number of the transaction at the database, once Commit has been called.
func (t *Tx) Number() string { return t.xid }

// InNewTransaction rolls t back and runs f in a new transaction.
func (t *Tx) InNewTransaction(f func(context.Context) error) error {
	if err := t.exec(t.conn, "ROLLBACK"); err != nil {
		return err
	}
	defer t.conn.Free()
	return t.inNewTransaction(f)
}

// Break closes the transaction's connection.
func (t *Tx) Break() { t.conn.Discard() }

// Late has t begin that much later, as far as it asks how old an answer of the catalogue is.
func (t *Tx) Late(by time.Duration) { t.reader.Begun = t.reader.Begun.Add(by) }

// NotePooler notes that a pooler is before the server.
func (t *Tx) NotePooler() { t.notePooler() }
