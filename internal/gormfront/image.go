package gormfront

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/rowversion"
)

// Images returns the rows that a plain INSERT has made.
func Images(stmt *gorm.Statement) (images []statement.Image) {
	omitted := omits(stmt)
	made := statement.Image{Guessed: guessesKeys(stmt, omitted)}
	made.Generated = !made.Guessed && generatesKey(stmt)
	version, stamp := models.FieldOf[rowversion.Version](stmt.Schema), models.FieldOf[rowversion.Stamp](stmt.Schema)
	models.Each(stmt, func(row reflect.Value) {
		img := made
		img.Value, img.Key = models.Values(stmt, row), keyOf(stmt, row)
		if version != nil && !omitted(version) {
			img.Version = models.In[rowversion.Version](stmt.Context, version, row)
		}
		if stamp != nil && !omitted(stamp) {
			img.Stamp = models.In[rowversion.Stamp](stmt.Context, stamp, row)
		}
		images = append(images, img)
	})
	maps := models.Indirect(stmt.Dest)
	// To several maps gorm adds others with the keys that are returned.
	stray := maps.Kind() == reflect.Slice && slices.ContainsFunc(stmt.Schema.PrimaryFields, omitted)
	models.EachMap(stmt.Schema, maps, func(value func(column string) any) {
		img := made
		if img.Value = value; !stray {
			img.Key = models.KeyOfMap(stmt.Schema, value)
		}
		images = append(images, img)
	})
	return images
}

// omits returns whether the program has left a column out of a statement.
func omits(stmt *gorm.Statement) func(*schema.Field) bool {
	if len(stmt.Selects)+len(stmt.Omits) == 0 {
		return func(f *schema.Field) bool {
			for _, same := range stmt.Schema.FieldsByName {
				if same.DBName == f.DBName && !same.Creatable {
					return true
				}
			}
			return false
		}
	}
	named, restricted := stmt.SelectAndOmitColumns(true, false)
	return func(f *schema.Field) bool {
		written, said := named[f.DBName]
		return said && !written || !said && restricted
	}
}

// keyOf returns the primary key of a row that was inserted, nil if the database made it and
// has not returned it.
func keyOf(stmt *gorm.Statement, row reflect.Value) []any {
	for _, f := range stmt.Schema.PrimaryFields {
		if _, zero := f.ValueOf(stmt.Context, row); zero && f.HasDefaultValue {
			return nil
		}
	}
	return models.Key(stmt, row)
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
		return !returns(stmt, f) && (several && f.AutoIncrement || omitted(f))
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
