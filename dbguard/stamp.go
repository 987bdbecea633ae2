package dbguard

import (
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/rowversion"
)

// Stamp is the type of an optional column that identifies the write of a row: each insert
// of a struct, and each update that raises the model's [Version], sets it to a
// random number. A model has at most one.
//
//	type Stock struct {
//		ID      int64
//		Left    int
//		Version dbguard.Version
//		Stamp   dbguard.Stamp
//	}
//
// MySQL and MariaDB keep no record of the outcome of a COMMIT that was not answered, so
// guard.Do recognizes its own write by its stamp. Without one, the outcome of an update
// that may have been committed remains unknown. PostgreSQL needs no stamps. 0 means that
// the row was written without one.
type Stamp = rowversion.Stamp

// stampOf returns the stamp field of a schema, or nil.
func stampOf(s *schema.Schema) *schema.Field { return models.FieldOf[Stamp](s) }
