package dbguard

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/models"
)

// written turns a versioned UPDATE or DELETE that matched fewer rows than it was
// given into a *ConflictError. After one that matched all, the models in memory get
// their rows' new versions.
func written(db *gorm.DB) {
	expected, ok := models.ExpectedBy(db.Statement)
	switch {
	case !ok, db.DryRun, db.Error != nil:
	case db.RowsAffected >= int64(len(expected.Rows)):
		bump(db, expected)
	default:
		c := &ConflictError{Kind: Stale, Table: catalogue.TableOf(db.Statement)}
		c.Evidence.Version = Version(expected.Rows[0].Version)
		db.Error = c
	}
}

// bump sets the versions and stamps in memory.
func bump(db *gorm.DB, expected models.Expected) {
	if !models.IsUpdate(db.Statement) {
		return // deleted for good
	}
	ctx := context.WithoutCancel(db.Statement.Context)
	set := func(r models.Loaded, f *schema.Field, now any) { _ = db.AddError(f.Set(ctx, r.Model, now)) }
	stamp := models.Assigned[Stamp](db.Statement)
	for _, r := range expected.Rows {
		if !r.Model.CanAddr() {
			continue
		}
		set(r, expected.Field, Version(r.Version+expected.Steps))
		if stamp != 0 {
			set(r, stampOf(db.Statement.Schema), stamp)
		}
	}
}
