package dbtx

import (
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// deferred returns a conflict for the error of a COMMIT at which a deferrable index refused
// a row. Such an index protects no row.
func (t *Tx) deferred(err error) error {
	if !dialect.IsDuplicate(err) {
		return err
	}
	table, _, _ := t.conn.Session.RefusingIndex(err)
	return &conflict.Error{Kind: conflict.Duplicate, Table: table, Err: t.front.Translate(err)}
}
