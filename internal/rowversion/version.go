package rowversion

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/gormfront/models"
)

// Version is the type of a version column: see dbguard.Version.
type Version int64

// ErrVersion is returned for a write that would bypass the versions of its model: see
// dbguard.ErrVersion.
var ErrVersion = errors.New("dbguard: versions would not be compared")

// versionOf returns the version field of a schema, or nil.
func versionOf(s *schema.Schema) *schema.Field { return models.FieldOf[Version](s) }

// only reports whether f is the version field of the model. It refuses a model
// that has two; one that hides another, in an embedded struct, is alone.
func only(f *schema.Field, stmt *gorm.Statement) bool {
	switch {
	case versionOf(stmt.Schema) == f:
		return true
	case stmt.Schema.FieldsByDBName[f.DBName] != f:
		return false
	}
	_ = stmt.AddError(fmt.Errorf("%w: %s has two version fields", ErrVersion, stmt.Schema.Name))
	return false
}
