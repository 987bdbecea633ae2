package gormfront

import (
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/rowversion"
)

// A model is a model of GORM.
type model struct{ schema *schema.Schema }

// Table implements statement.Model.
func (m model) Table() string { return m.schema.Table }

// Primary implements statement.Model.
func (m model) Primary() []string { return m.schema.PrimaryFieldDBNames }

// Version implements statement.Model.
func (m model) Version() string { return columnOf[rowversion.Version](m.schema) }

// Stamp implements statement.Model.
func (m model) Stamp() string { return columnOf[rowversion.Stamp](m.schema) }

// columnOf returns the column of type T, "" if there is none.
func columnOf[T any](s *schema.Schema) string {
	if f := models.FieldOf[T](s); f != nil {
		return f.DBName
	}
	return ""
}

// Fills implements statement.Model.
func (m model) Fills(column string, v any) bool {
	f := m.schema.LookUpField(column)
	return f == nil || !f.Creatable || sqlvalue.IsNull(v) || sqlvalue.IsZero(v) && f.HasDefaultValue
}

// Declares implements statement.Model.
func (m model) Declares(other statement.Model) bool {
	o, ok := other.(model)
	return ok && o.schema.ModelType == m.schema.ModelType
}
