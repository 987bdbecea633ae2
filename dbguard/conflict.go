package dbguard

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// Kind is the way in which the database refused a write.
type Kind int

const (
	Duplicate Kind = iota + 1 // an INSERT met an existing row
	Stale                     // an UPDATE by version matched no row
)

func (k Kind) String() string {
	switch k {
	case Duplicate:
		return "duplicate"
	case Stale:
		return "stale"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// A ConflictError is a write that the database refused. A Duplicate matches
// gorm.ErrDuplicatedKey; the driver's error can be had with errors.As. Its text
// names tables and columns, never values.
type ConflictError struct {
	Kind     Kind
	Table    string
	Columns  []string // that identify the row; empty if it is not a protected one
	Key      string   // that protects the row; empty if none does
	Evidence Evidence
	Err      error // the driver's; nil after an update that matched no row
}

// Evidence is what is known about the row of a conflict. It is complete when the
// transaction has ended.
type Evidence struct {
	Protected bool // the row is protected; otherwise nothing was read, and the rest is zero
	Unread    bool // the row is there, but no read finds it

	Found   bool // the row is there
	Changed bool // another writer wrote it while this caller had the lock
	// Shared: another key may protect the row, too. Either this key protects several
	// rows, or the database spells the row's name in another way.
	Shared   bool
	Expected bool // the row is as the caller expected: something else did not match

	Version, FoundVersion Version // after an update: expected, and committed now
}

func (c *ConflictError) Error() string {
	var b strings.Builder
	switch c.Kind {
	case Duplicate:
		b.WriteString("dbguard: duplicate row in ")
	default:
		b.WriteString("dbguard: no row of the expected version in ")
	}
	b.WriteString(c.Table)
	if len(c.Columns) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(c.Columns, ", "))
	}
	return b.String()
}

// Is matches gorm.ErrDuplicatedKey for a Duplicate.
func (c *ConflictError) Is(target error) bool {
	return c.Kind == Duplicate && target == gorm.ErrDuplicatedKey
}

// Unwrap returns the driver's error.
func (c *ConflictError) Unwrap() error { return c.Err }
