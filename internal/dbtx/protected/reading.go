package protected

import (
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/rowversion"
)

// A Reading is the result of one read of a row.
type Reading struct {
	Found   bool
	Changed bool  // the row has changed since the snapshot: nothing more is known
	Locked  bool  // by another transaction; nothing more is known
	Key     []any // primary key
	Version rowversion.Version
	Texts   map[string]string // the row's name as the database spells it, by column
}

// ChangedTo reports whether the row has been written between the readings a and b. A
// version of 0 was not read, and an older one comes from a server that is behind.
func (a Reading) ChangedTo(b Reading) bool {
	switch {
	case b.Changed, a.Found != b.Found:
		return true
	case !a.Found:
		return false
	case len(a.Key) == len(b.Key) && !sqlvalue.SameKey(a.Key, b.Key):
		return true
	}
	return a.Version != 0 && b.Version > a.Version
}
