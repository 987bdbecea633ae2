package rowversion

import (
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// A modifier is the common part of a field's clauses: they write no SQL themselves. gorm
// calls their ModifyStatement.
type modifier struct{ field *schema.Field }

func (modifier) Name() string               { return "" }
func (modifier) Build(clause.Builder)       {}
func (modifier) MergeClause(*clause.Clause) {}

// GormDBDataType implements gorm's migrator interface.
func (Version) GormDBDataType(*gorm.DB, *schema.Field) string { return "bigint" }

// CreateClauses implements gorm's schema.CreateClausesInterface.
func (Version) CreateClauses(f *schema.Field) []clause.Interface {
	notNull(f, 1)
	return []clause.Interface{insertVersion{modifier{f}}}
}

// UpdateClauses implements gorm's schema.UpdateClausesInterface.
func (Version) UpdateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{updateVersion{modifier{f}}}
}

// DeleteClauses implements gorm's schema.DeleteClausesInterface.
func (Version) DeleteClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{deleteVersion{updateVersion{modifier{f}}}}
}

// GormDBDataType implements gorm's migrator interface.
func (Stamp) GormDBDataType(*gorm.DB, *schema.Field) string { return "bigint" }

// CreateClauses implements gorm's schema.CreateClausesInterface.
func (Stamp) CreateClauses(f *schema.Field) []clause.Interface {
	notNull(f, 0)
	return []clause.Interface{newStamp{modifier{f}}}
}

// notNull declares the column of a field NOT NULL with a default, as a tag would. Were it
// part of the type, a second migration would take it back on PostgreSQL. gorm calls it
// while it makes the schema.
func notNull(f *schema.Field, value int64) {
	f.NotNull = true
	f.HasDefaultValue, f.DefaultValue, f.DefaultValueInterface = true, strconv.FormatInt(value, 10), value
}
