package protected

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belaygo/belay/internal/dbtx/statement"
)

// ErrNoText is returned where the query that is sent is not known before.
var ErrNoText = errors.New("a plugin may send another query")

// A Loader reads rows for Belay by the means of a front, which knows how to decode their
// values. Its reads call no hooks, and are not logged.
type Loader interface {
	// Load reads a row. It returns nil if the row is not there.
	Load(ctx context.Context, q Query) (statement.Value, error)
	// Text returns the query by which Load would read a row, or ErrNoText.
	Text(ctx context.Context, q Query) (query string, args []any, err error)
	// LoadThose reads the names of those rows that exist. rows are all of one table and
	// named by the same columns.
	LoadThose(ctx context.Context, rows []*Row) ([]statement.Value, error)
	// On returns a loader that reads on another connection.
	On(c *sql.Conn) Loader
}

// A Query is a read of one row by its name.
type Query struct {
	Row     *Row
	Model   statement.Model // that decodes the row; nil = the Row's
	Columns []string        // empty = all
	Any     [][]Condition   // one of these must hold, too, if there are any
	Lock    string          // the end of the SELECT, as the dialect spells it
}

// A Condition is met by a row that has the value. All of a list must be met.
type Condition struct {
	Column string
	Value  any
}

// A Named is a model that names a row.
type Named interface {
	Table() string
	Primary() []string // the columns of the primary key
	// Set returns the columns whose fields are not zero. A version is no part of a name.
	Set() []string
	// HasKey reports whether the model's primary key is set, by the program.
	HasKey() bool
	// Fitting returns the indexes whose columns are all set in the model. If there is none,
	// it returns the indexes of which some columns are set, and of which the program writes
	// the others as zeros.
	Fitting(indexes [][]string) [][]string
	// Row names the row by columns. r has its other properties.
	Row(columns []string, r Row) *Row
	// Write describes a statement with the model.
	Write() *statement.Write
	// Pointer returns the pointer to the model, nil if it was given as a struct.
	Pointer() any
}
