package statement

import (
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/rowversion"
)

// A Write is a statement that writes rows, as its front describes it. Its values are those
// of the moment in which they are asked for: a front describes a statement again after it
// was sent, because hooks and the database may have altered the rows that it was given.
type Write struct {
	How     How
	Deletes bool   // it is a DELETE that is no update, as a soft one is
	Table   string // with its schema if it is named with one; "" if it is not known
	Model   Model  // of the rows; nil if they have none
	Rows    []Row  // that the statement is given

	Given  int   // how many rows an INSERT is given
	Values int64 // how many rows an INSERT was to make

	Expected []Expected       // the rows whose versions an UPDATE or DELETE compares
	Steps    int64            // by how much an UPDATE raises a version
	Stamp    rowversion.Stamp // that an UPDATE assigns; 0 if none
	Rekeys   bool             // an UPDATE sets the primary key

	Images []Image // the rows that an INSERT has made, after it has succeeded

	one [1]Row // most statements are given one
}

// Add adds a row that the statement is given.
func (w *Write) Add(r Row) {
	if w.Rows == nil {
		w.Rows = w.one[:0]
	}
	w.Rows = append(w.Rows, r)
}

// Value returns a column's value; nil if it is not known.
type Value = func(column string) any

// In returns a row's value of type T in a column, the zero value if it is not set or the
// column is "".
func In[T any](row Value, column string) (value T) {
	if column != "" {
		value, _ = sqlvalue.Indirect(row(column)).(T)
	}
	return value
}

// A Row is a row that a statement is given.
type Row struct {
	Value  Value
	Struct any // the pointer to the struct that has the values; nil if there is none
}

// An Expected is a row that was loaded before, and that a statement writes only if it has
// the version still.
type Expected struct {
	Value   Value
	Key     []any // primary key
	Version rowversion.Version
}

// An Image is a row as an INSERT has made it.
type Image struct {
	Value     Value
	Key       []any              // primary key; nil if it is not known
	Guessed   bool               // the key may be another
	Generated bool               // the database made the key, for this row alone
	Version   rowversion.Version // 0 = the row has none
	Stamp     rowversion.Stamp   // 0 = the row has none
}

// How is the way in which a statement writes.
type How int

// The ways.
const (
	Raw       How = iota // raw SQL, or a front's expansion of it
	Plain                // INSERT
	Versioned            // UPDATE or DELETE with a compare, that matched all its rows
	Blind                // UPDATE or DELETE without a compare, upsert, INSERT IGNORE and the like
	Message              // INSERT of messages, which is Belay's own: neither evidence nor cover
)

// A Model describes rows of one kind, as their front declares them.
type Model interface {
	// Table returns the model's own table. A statement may be to another one.
	Table() string
	// Primary returns the columns of the primary key.
	Primary() []string
	// Version and Stamp return the columns of a row's version and stamp; "" if it has none.
	Version() string
	Stamp() string
	// Fills reports whether the database may choose another value for a column of a new
	// row that is given v.
	Fills(column string, v any) bool
	// Declares reports whether another model is declared by the same type.
	Declares(other Model) bool
}
