package conflict

import (
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/rowversion"
)

// Kind is how the database refused a write.
type Kind string

const (
	Duplicate Kind = "duplicate" // an INSERT met an existing row
	Stale     Kind = "stale"     // an UPDATE or DELETE by version matched fewer rows than it named
)

// A Subject is the relation of an operation to the row that refused its write.
type Subject int

const (
	OtherRow     Subject = iota // no key of the operation protects it
	ProtectedRow                // the Key of the Error protects it, if the Evidence has found it
	ClaimRow                    // the claim of the operation's request, which has taken effect before
)

// An Error reports a write that the database refused. A Duplicate matches
// gorm.ErrDuplicatedKey, and errors.As finds the driver's error. The text names tables
// and columns, never values.
type Error struct {
	Kind     Kind
	Table    string
	Columns  []string // the columns that identify the row; empty if it is not protected
	Key      string   // the key that protects the row; empty if none does
	Subject  Subject  // the operation's relation to the row
	Evidence Evidence
	Err      error // the driver's; nil after an update that matched no row
}

// Evidence is the known facts about the row of a conflict. It is complete when the
// transaction has ended. It is zero unless the row is protected.
type Evidence struct {
	Protected bool // the row is protected; otherwise the rest is zero
	Unread    bool // the row is there, but no read finds it

	Found   bool // the row is there
	Changed bool // another writer wrote it since this caller had the lock, or, without one, since it first read the row
	// Shared is set if another key may protect the row, too: this key protects several
	// rows, or the database spells the row's name differently.
	Shared   bool
	Expected bool // the row is as the caller expected: something else did not match
	// Behind is set if the server may have been behind others of its cluster: the change
	// of Changed may be from before the caller had the lock. See Check.
	Behind bool

	Version, FoundVersion rowversion.Version // after an update: expected, and committed now
}

func (c *Error) Error() string {
	text := "dbguard: no row of the expected version in " + c.Table
	if c.Kind == Duplicate {
		text = "dbguard: duplicate row in " + c.Table
	}
	if len(c.Columns) > 0 {
		text += " (" + strings.Join(c.Columns, ", ") + ")"
	}
	return text
}

// Unwrap returns the driver's error and, of a Duplicate, gorm.ErrDuplicatedKey.
func (c *Error) Unwrap() (all []error) {
	if c.Err != nil {
		all = append(all, c.Err)
	}
	if c.Kind == Duplicate {
		all = append(all, gorm.ErrDuplicatedKey)
	}
	return all
}
