package journal

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront"
	"github.com/belaygo/belay/internal/rowversion"
)

// An Image is a protected Row as a transaction has written it: enough to recognize the
// write.
type Image struct {
	Row       *protected.Row
	Model     statement.Model // the written model: another model may have named the row
	key       []any           // primary key; nil = not known
	guessed   bool            // the key may be another
	generated bool            // the database made the key, for this row alone
	inserted  bool
	deleted   bool
	vague     bool               // the write may have left the row as it was, or its result is unknown
	From      rowversion.Version // the version before the transaction
	version   rowversion.Version // 0 = the row has none
	stamp     rowversion.Stamp   // 0 = the row has none
}

// StampColumn returns the column that has the stamp of the write, "" if none has.
func (i Image) StampColumn() string {
	if i.stamp == 0 {
		return ""
	}
	return i.Model.Stamp()
}

// WithoutStamp returns the image of a write whose stamp proves nothing.
func (i Image) WithoutStamp() Image {
	i.stamp = 0
	return i
}

// Inserted returns the images of those rows that a plain INSERT has written.
func Inserted(rows *protected.Rows, stmt *gorm.Statement) (images []Image) {
	named, restricted := stmt.SelectAndOmitColumns(true, false)
	omitted := func(f *schema.Field) bool {
		written, said := named[f.DBName]
		return said && !written || !said && restricted
	}
	guesses := guessesKeys(stmt, omitted)
	generated := !guesses && generatesKey(stmt)
	models.Each(stmt, func(model reflect.Value) {
		for _, r := range rows.Matching(models.TableOf(stmt), models.Values(stmt, model)) {
			img := Image{Row: r, Model: gormfront.Model(stmt.Schema), key: models.Key(stmt, model), guessed: guesses, generated: generated, inserted: true}
			for _, f := range stmt.Schema.PrimaryFields {
				if _, zero := f.ValueOf(stmt.Context, model); zero && f.HasDefaultValue {
					img.key = nil // the database made it, and has not returned it
				}
			}
			if f := models.FieldOf[rowversion.Version](stmt.Schema); f != nil && !omitted(f) {
				img.version = models.In[rowversion.Version](stmt.Context, f, model)
			}
			if f := models.FieldOf[rowversion.Stamp](stmt.Schema); f != nil && !omitted(f) {
				img.stamp = models.In[rowversion.Stamp](stmt.Context, f, model)
			}
			images = append(images, img)
		}
	})
	maps := models.Indirect(stmt.Dest)
	// To several maps gorm adds others with the keys that are returned.
	stray := maps.Kind() == reflect.Slice && slices.ContainsFunc(stmt.Schema.PrimaryFields, omitted)
	models.EachMap(stmt.Schema, maps, func(value func(column string) any) {
		for _, r := range rows.Matching(models.TableOf(stmt), value) {
			img := Image{Row: r, Model: gormfront.Model(stmt.Schema), guessed: guesses, generated: generated, inserted: true}
			if !stray {
				img.key = models.KeyOfMap(stmt.Schema, value)
			}
			images = append(images, img)
		}
	})
	return images
}

// generatesKey reports whether an INSERT left it to the database to number its rows.
func generatesKey(stmt *gorm.Statement) bool {
	values, ok := stmt.Clauses["VALUES"].Expression.(clause.Values)
	if !ok {
		return false
	}
	return slices.ContainsFunc(stmt.Schema.PrimaryFields, func(f *schema.Field) bool {
		return f.AutoIncrement && !slices.ContainsFunc(values.Columns, func(c clause.Column) bool { return c.Name == f.DBName })
	})
}

// guessesKeys reports whether the primary keys in memory may not be those in the
// database. From MySQL gorm knows only the first one that the database made, and counts
// on from it; on a cluster the keys have gaps. And gorm does not set a key in memory that
// it has omitted.
func guessesKeys(stmt *gorm.Statement, omitted func(*schema.Field) bool) bool {
	several := models.Count(stmt) > 1
	return slices.ContainsFunc(stmt.Schema.PrimaryFields, func(f *schema.Field) bool {
		return (several && f.AutoIncrement || omitted(f)) && !returns(stmt, f)
	})
}

// returns reports whether the INSERT has returned the value of a column.
func returns(stmt *gorm.Statement, f *schema.Field) bool {
	c, ok := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	return ok && slices.Contains(stmt.BuildClauses, "RETURNING") &&
		(len(c.Columns) == 0 || slices.ContainsFunc(c.Columns, func(c clause.Column) bool {
			return c.Name == "*" || c.Name == f.DBName
		}))
}

// Updated returns the images of those rows that a versioned UPDATE or DELETE has written.
func Updated(rows *protected.Rows, stmt *gorm.Statement, expected models.Expected) (images []Image) {
	stamp := models.Assigned[rowversion.Stamp](stmt)
	for _, loaded := range expected.Rows {
		for _, r := range rows.Matching(models.TableOf(stmt), models.Values(stmt, loaded.Model)) {
			images = append(images, Image{
				Row: r, Model: gormfront.Model(stmt.Schema), key: models.Key(stmt, loaded.Model), deleted: !models.IsUpdate(stmt),
				From: rowversion.Version(loaded.Version), version: rowversion.Version(loaded.Version + expected.Steps), stamp: stamp,
			})
		}
	}
	return images
}
