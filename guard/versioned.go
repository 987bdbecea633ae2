package guard

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/gormfront/models"
)

// versioned is a model with a version field.
type versioned[T any] struct {
	*schema.Schema
	field *schema.Field
}

func parse[T any](tx *gorm.DB, row *T) (versioned[T], error) {
	stmt := &gorm.Statement{DB: tx}
	if err := stmt.Parse(row); err != nil {
		return versioned[T]{}, fmt.Errorf("parse %T: %w", row, err)
	}
	if f := models.FieldOf[dbguard.Version](stmt.Schema); f != nil {
		return versioned[T]{stmt.Schema, f}, nil
	}
	return versioned[T]{}, fmt.Errorf("guard: Update needs a version: add a field of type dbguard.Version to %s", stmt.Schema.Name)
}

func (m versioned[T]) version(ctx context.Context, row *T) dbguard.Version {
	return models.In[dbguard.Version](ctx, m.field, reflect.ValueOf(row))
}

// load replaces row by what the database has under its primary key.
func (m versioned[T]) load(ctx context.Context, tx *gorm.DB, row *T) error {
	q := tx
	for _, f := range m.PrimaryFields {
		value, _ := f.ValueOf(ctx, reflect.ValueOf(row))
		q = q.Where(clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: f.DBName}, Value: value})
	}
	var found T
	if err := q.Take(&found).Error; err != nil {
		return err
	}
	if m.version(ctx, &found) == 0 { // 0 in memory means not loaded
		return fmt.Errorf("%w: a row of %s has version 0 or NULL, the first one is 1", dbguard.ErrVersion, m.Table)
	}
	*row = found
	return nil
}

// restore makes sure that what is saved is the row that was asked for, if it has
// the expected version, whatever the operation has put into row.
func (m versioned[T]) restore(ctx context.Context, row, asked *T, expected dbguard.Version) error {
	for _, f := range m.PrimaryFields {
		now, _ := f.ValueOf(ctx, reflect.ValueOf(row))
		was, _ := f.ValueOf(ctx, reflect.ValueOf(asked))
		if !reflect.DeepEqual(now, was) {
			return fmt.Errorf("guard: the change has altered the primary key of a row of %s", m.Table)
		}
	}
	if err := m.field.Set(ctx, reflect.ValueOf(row), expected); err != nil {
		return fmt.Errorf("restore version: %w", err)
	}
	return nil
}

// whole returns a session whose update saves all columns of a row, but those that load has not read.
func (m versioned[T]) whole(tx *gorm.DB) *gorm.DB {
	if slices.ContainsFunc(m.Fields, models.Unread) {
		tx = models.WithoutUnread(tx)
	}
	return tx.Select("*").Omit(clause.Associations)
}
