package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/dbguard"
)

var errOutsideDo = errors.New("guard: Insert and Update must be run by Do, with the ctx and tx it gives")

// Insert returns an operation that inserts row. The key protects the row by the
// one unique index whose columns are set in row; if there are several, name one
// with Protects. After a failure row is as it was.
func Insert[T any](row *T) Op {
	return func(ctx context.Context, tx *gorm.DB) error {
		t := dbguard.FromContext(ctx)
		if t == nil {
			return errOutsideDo
		}
		if row == nil {
			return errors.New("guard: Insert of a nil row")
		}
		if err := t.ProtectNew(row); err != nil {
			return err
		}
		before := *row
		t.OnRollback(func() { *row = before })
		return tx.Create(row).Error
	}
}

// Update returns an operation that loads the row with row's primary key into
// row, lets change alter it, and saves it if nobody else has updated it since:
// T needs a field of type dbguard.Version. When row comes with a version, it is
// that version that is expected, and ErrStale if it is old. Associations are
// not saved. After a failure row is as it was.
//
// Update prevents lost updates. It does not make a request harmless that comes
// again: only a unique row for the request does.
func Update[T any](row *T, change func(*T) error) Op {
	return func(ctx context.Context, tx *gorm.DB) error {
		t := dbguard.FromContext(ctx)
		if t == nil {
			return errOutsideDo
		}
		if row == nil || change == nil {
			return errors.New("guard: Update of a nil row or with a nil change")
		}
		version, err := versionField(tx, row)
		if err != nil {
			return err
		}
		if err := t.ProtectPrimary(row); err != nil {
			return err
		}

		before := *row
		t.OnRollback(func() { *row = before })
		brought, old := version.ValueOf(ctx, reflect.ValueOf(&before))
		if err := load(ctx, tx, row); err != nil {
			return err
		}
		if err := change(row); err != nil {
			return err
		}
		if !old {
			if err := version.Set(ctx, reflect.ValueOf(row), brought); err != nil {
				return fmt.Errorf("restore version: %w", err)
			}
		}
		return tx.Select("*").Omit(clause.Associations).Updates(row).Error
	}
}

// load replaces row by what the database has under its primary key.
func load[T any](ctx context.Context, tx *gorm.DB, row *T) error {
	stmt := &gorm.Statement{DB: tx}
	if err := stmt.Parse(row); err != nil {
		return fmt.Errorf("parse %T: %w", row, err)
	}
	q := tx
	for _, f := range stmt.Schema.PrimaryFields {
		value, _ := f.ValueOf(ctx, reflect.ValueOf(row))
		q = q.Where(clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: f.DBName}, Value: value})
	}
	var found T
	if err := q.Take(&found).Error; err != nil {
		return err
	}
	*row = found
	return nil
}

func versionField(tx *gorm.DB, row any) (*schema.Field, error) {
	stmt := &gorm.Statement{DB: tx}
	if err := stmt.Parse(row); err != nil {
		return nil, fmt.Errorf("parse %T: %w", row, err)
	}
	for _, f := range stmt.Schema.Fields {
		if f.FieldType == reflect.TypeFor[dbguard.Version]() && f.DBName != "" {
			return f, nil
		}
	}
	return nil, fmt.Errorf("guard: Update needs a field of type dbguard.Version in %s", stmt.Schema.Name)
}
