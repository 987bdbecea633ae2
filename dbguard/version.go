package dbguard

import (
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/rowversion"
)

// Version is the type of a version column: the second layer of updates. A model
// has at most one.
//
// A new row has version 1. Every update of the model through gorm adds 1, whatever it
// sets and wherever it runs. A struct with a primary key and a version counts as
// loaded, one of version 0 does not. An update of a loaded struct updates the row only
// if that still has the version. If not, and Install was called, the error is a
// *ConflictError. That applies to several structs at once, all of which must be
// updated, and to deletes, too; a soft delete is an update. After a successful update
// the version in memory is the new one.
//
// An upsert raises the version of a row that it changes: gorm's Save of a parent, which
// upserts the foreign keys of its loaded children, leaves their versions alone. A child
// that Association.Append gives another parent has another version than in memory.
//
// Outside of a guarded transaction, and with gorm's SkipDefaultTransaction, an update of
// several structs writes those that match even if it returns a *ConflictError.
//
// A row of version 0 is never compared. An operation of guard.Do that loads one gets
// ErrVersion, and so does one that raises a version beyond the limit of its column.
// Outside of operations only Check reports both.
//
// A write that would bypass the versions is refused with ErrVersion. That is an update of
// rows of which only some were loaded or one is given twice, and an upsert of all columns.
// gorm's Save of a slice, or of a row that does not exist, is such an upsert.
type Version = rowversion.Version

// versionOf returns the version field of a schema, or nil.
func versionOf(s *schema.Schema) *schema.Field { return models.FieldOf[Version](s) }
