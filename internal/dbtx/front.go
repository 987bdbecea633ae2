package dbtx

import (
	"context"

	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/tablerow"
)

// A front is the library by which the program writes its statements. It describes them, and
// models, to the transaction, which itself sends only SQL of its own.
type front interface {
	protected.Loader
	// Parse returns a model that names a row.
	Parse(ctx context.Context, model any) (protected.Named, error)
	// ParseRow returns a row that is named by its table. version and stamp are the
	// columns of its version and its stamp, "" if it has none.
	ParseRow(ctx context.Context, row *tablerow.Row, version, stamp string) (protected.Named, error)
	// Insert inserts rows in one plain INSERT, with prefix before it and without hooks.
	Insert(models any, prefix string) error
	// Translate makes an error of the database match the front's own, too.
	Translate(err error) error
}
