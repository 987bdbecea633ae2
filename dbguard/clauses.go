package dbguard

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// GormDBDataType implements gorm's migrator interface.
func (Version) GormDBDataType(*gorm.DB, *schema.Field) string { return "bigint NOT NULL DEFAULT 1" }

// CreateClauses implements gorm's schema.CreateClausesInterface.
func (Version) CreateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{insertVersion{f}}
}

// UpdateClauses implements gorm's schema.UpdateClausesInterface.
func (Version) UpdateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{updateVersion{f}}
}

// DeleteClauses implements gorm's schema.DeleteClausesInterface.
func (Version) DeleteClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{deleteVersion{updateVersion{f}}}
}

// GormDBDataType implements gorm's migrator interface.
func (Stamp) GormDBDataType(*gorm.DB, *schema.Field) string { return "bigint NOT NULL DEFAULT 0" }

// CreateClauses implements gorm's schema.CreateClausesInterface.
func (Stamp) CreateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{newStamp{f}}
}
