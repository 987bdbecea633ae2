package dbguard

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/gormfront/models"
)

// written turns a versioned UPDATE or DELETE that matched fewer rows than it was
// given into a *ConflictError. One that matched more is an error: a primary key of the
// model names several rows of the table. After one that matched all, the models in memory
// get their rows' new versions.
func written(db *gorm.DB) {
	expected, ok := models.ExpectedBy(db.Statement)
	switch n := int64(len(expected.Rows)); {
	case !ok, n == 0, db.DryRun, db.Error != nil:
	case db.RowsAffected > n:
		db.Error = fmt.Errorf("%w: %d rows of %s were written for %d: the primary key of the model is not unique in the table",
			ErrUnprotectable, db.RowsAffected, models.TableOf(db.Statement), n)
	case db.RowsAffected == n:
		bump(db, expected)
	default:
		c := &ConflictError{Kind: Stale, Table: models.TableOf(db.Statement)}
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
