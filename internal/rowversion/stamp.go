package rowversion

import (
	"math"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/random"
)

// Stamp is the type of a column that identifies the write of a row: see dbguard.Stamp.
type Stamp int64

// newStamp gives new rows their stamps.
type newStamp struct{ modifier }

// ModifyStatement implements gorm.StatementModifier.
func (n newStamp) ModifyStatement(stmt *gorm.Statement) {
	models.Each(stmt, func(model reflect.Value) {
		_ = stmt.AddError(n.field.Set(stmt.Context, model, RandomStamp()))
	})
}

// RandomStamp returns the stamp of a new write.
func RandomStamp() Stamp { return Stamp(1 + random.Int64N(math.MaxInt64)) }

// stampOf returns the stamp field of a schema, or nil.
func stampOf(s *schema.Schema) *schema.Field { return models.FieldOf[Stamp](s) }
