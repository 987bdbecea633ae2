package dbguard

import (
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// An image is what a transaction has made of a protected row: enough to
// recognise it.
type image struct {
	row      *protectedRow
	schema   *schema.Schema // of the model that was written: another may have named the row
	key      []any          // primary key; nil = not known
	guessed  bool           // the key may be another
	inserted bool
	deleted  bool
	vague    bool    // it may be as it was before, or nobody knows how it is
	from     Version // before the transaction
	version  Version // 0 = the row has none
	columns  []column
}

type column struct {
	field *schema.Field
	value any
}

// imagesOfInsert returns what a plain INSERT has made of the rows.
func imagesOfInsert(stmt *gorm.Statement, rows []*protectedRow) (images []image) {
	if len(rows) == 0 {
		return nil
	}
	named, restricted := stmt.SelectAndOmitColumns(true, false)
	omitted := func(f *schema.Field) bool {
		written, said := named[f.DBName]
		return said && !written || !said && restricted
	}
	guesses := guessesKeys(stmt, omitted)
	eachModel(stmt, func(model reflect.Value) {
		for _, r := range rows {
			if !r.in(stmt, model) {
				continue
			}
			img := image{row: r, schema: stmt.Schema, key: keyOf(stmt, model), guessed: guesses, inserted: true}
			for _, f := range stmt.Schema.Fields {
				v, zero := f.ValueOf(stmt.Context, model)
				if zero && f.HasDefaultValue && f.PrimaryKey {
					img.key = nil // the database made it, and has not told
				}
				if f.DBName == "" || !f.Creatable || zero && f.HasDefaultValue || omitted(f) {
					continue
				}
				img.add(f, v)
			}
			if f := versionOf(stmt.Schema); f != nil {
				img.version = versionIn(stmt.Context, f, model)
			}
			images = append(images, img)
		}
	})
	maps := indirectAll(stmt.Dest)
	// To several maps gorm adds others with the keys that are returned.
	stray := maps.Kind() == reflect.Slice && slices.ContainsFunc(stmt.Schema.PrimaryFields, omitted)
	eachMap(stmt.Schema, maps, func(value func(column string) any) {
		for _, r := range rows {
			if r.is(value) {
				img := imageOfMap(stmt.Schema, value, omitted)
				img.row, img.guessed = r, guesses
				if stray {
					img.key = nil
				}
				images = append(images, img)
			}
		}
	})
	return images
}

// imageOfMap returns what a plain INSERT has made of a row given as a map, into
// which gorm puts the primary key, and on some databases not even that.
func imageOfMap(s *schema.Schema, value func(column string) any, omitted func(*schema.Field) bool) image {
	img := image{schema: s, inserted: true}
	for _, f := range s.PrimaryFields {
		if v := value(f.DBName); !isNull(v) {
			img.key = append(img.key, v)
		}
	}
	if len(img.key) < len(s.PrimaryFields) {
		img.key = nil
	}
	for _, name := range s.DBNames {
		if f := s.FieldsByDBName[name]; !omitted(f) {
			img.add(f, value(name))
		}
	}
	return img
}

// guessesKeys reports whether the primary keys in memory may not be those in the
// database: gorm has to count on from the first one that the database made, as it
// knows no other from MySQL, and on a cluster they have gaps; and it leaves a key
// in memory alone that it has omitted.
func guessesKeys(stmt *gorm.Statement, omitted func(*schema.Field) bool) bool {
	several := rowsIn(stmt) > 1
	return slices.ContainsFunc(stmt.Schema.PrimaryFields, func(f *schema.Field) bool {
		return (several && f.AutoIncrement || omitted(f)) && !returns(stmt, f)
	})
}

// returns reports whether the INSERT has told what a column is.
func returns(stmt *gorm.Statement, f *schema.Field) bool {
	c, ok := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	return ok && slices.Contains(stmt.BuildClauses, "RETURNING") &&
		(len(c.Columns) == 0 || slices.ContainsFunc(c.Columns, func(c clause.Column) bool {
			return c.Name == "*" || c.Name == f.DBName
		}))
}

// imagesOfUpdate returns what a versioned UPDATE or DELETE has made of the rows.
func imagesOfUpdate(stmt *gorm.Statement, expected expectedVersion, rows []*protectedRow) (images []image) {
	set, updated := stmt.Clauses["SET"].Expression.(clause.Set)
	for _, loaded := range expected.rows {
		for _, r := range rows {
			if !r.in(stmt, loaded.model) {
				continue
			}
			img := image{
				row: r, schema: stmt.Schema, key: keyOf(stmt, loaded.model),
				deleted: !updated, from: loaded.version, version: loaded.version + 1,
			}
			for _, a := range set {
				if f := stmt.Schema.LookUpField(a.Column.Name); f != nil && f != expected.field {
					img.add(f, a.Value)
				}
			}
			images = append(images, img)
		}
	}
	return images
}

// imagesOf returns what the writes of a transaction, one after the other, have
// made of rows, as far as that can be recognised.
func imagesOf(writes []write) (images []image) {
	for _, w := range writes {
		for i := range images {
			if len(w.images) == 0 && w.mayHaveWritten(images[i].row, Stale) {
				images[i].vague = true
			}
		}
		for _, img := range w.images {
			images = latest(images, img)
		}
	}
	return slices.DeleteFunc(images, func(i image) bool { return i.vague })
}

// latest adds an image in place of an earlier one of the same row.
func latest(images []image, img image) []image {
	i := slices.IndexFunc(images, func(earlier image) bool { return earlier.row == img.row })
	if i < 0 {
		return append(images, img)
	}
	earlier := images[i]
	img.vague = earlier.vague || earlier.inserted && img.deleted || earlier.deleted
	img.from, img.inserted = earlier.from, img.inserted || earlier.inserted
	images[i] = img
	return images
}

func keyOf(stmt *gorm.Statement, model reflect.Value) (key []any) {
	for _, f := range stmt.Schema.PrimaryFields {
		key = append(key, fieldOf(stmt.Context, f, model))
	}
	return key
}

// in reports whether a model is the row.
func (r *protectedRow) in(stmt *gorm.Statement, model reflect.Value) bool {
	return model.IsValid() && r.is(func(name string) any {
		if f := stmt.Schema.LookUpField(name); f != nil {
			return fieldOf(stmt.Context, f, model)
		}
		return nil
	})
}

// add notes a column if it comes back from the database as it was written.
func (i *image) add(f *schema.Field, v any) {
	if f.Serializer != nil {
		return
	}
	v = indirect(v)
	switch v := v.(type) {
	case time.Time:
		i.columns = append(i.columns, column{f, v})
		return
	case []byte:
		i.columns = append(i.columns, column{f, string(v)})
		return
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		i.columns = append(i.columns, column{f, v})
	}
}

// sameAs reports whether a column has the value in the database, too. A time may
// have been rounded to a second there.
func (c column) sameAs(v any) bool {
	v = indirect(v)
	if a, ok := c.value.(time.Time); ok {
		b, ok := v.(time.Time)
		return ok && a.Sub(b).Abs() <= time.Second
	}
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	return equal(c.value, v)
}
