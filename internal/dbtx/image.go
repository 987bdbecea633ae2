package dbtx

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// An image is what a transaction has made of a protected row: enough to tell
// whether it was this transaction that did.
type image struct {
	row       *protected.Row
	schema    *schema.Schema // of the model that was written: another may have named the row
	key       []any          // primary key; nil = not known
	guessed   bool           // the key may be another
	generated bool           // the database made the key, for this row alone
	inserted  bool
	deleted   bool
	vague     bool            // it may be as it was before, or nobody knows how it is
	from      dbguard.Version // before the transaction
	version   dbguard.Version // 0 = the row has none
	stamp     dbguard.Stamp   // 0 = the row has none
}

// imagesOfInsert returns what a plain INSERT has made of the rows.
func (t *Tx) imagesOfInsert(stmt *gorm.Statement) (images []image) {
	named, restricted := stmt.SelectAndOmitColumns(true, false)
	omitted := func(f *schema.Field) bool {
		written, said := named[f.DBName]
		return said && !written || !said && restricted
	}
	guesses := guessesKeys(stmt, omitted)
	generated := !guesses && generatesKey(stmt)
	models.Each(stmt, func(model reflect.Value) {
		for _, r := range t.rows.Matching(stmt, models.Values(stmt, model)) {
			img := image{row: r, schema: stmt.Schema, key: models.Key(stmt, model), guessed: guesses, generated: generated, inserted: true}
			for _, f := range stmt.Schema.PrimaryFields {
				if _, zero := f.ValueOf(stmt.Context, model); zero && f.HasDefaultValue {
					img.key = nil // the database made it, and has not told
				}
			}
			if f := models.FieldOf[dbguard.Version](stmt.Schema); f != nil && !omitted(f) {
				img.version = models.In[dbguard.Version](stmt.Context, f, model)
			}
			if f := models.FieldOf[dbguard.Stamp](stmt.Schema); f != nil && !omitted(f) {
				img.stamp = models.In[dbguard.Stamp](stmt.Context, f, model)
			}
			images = append(images, img)
		}
	})
	maps := models.Indirect(stmt.Dest)
	// To several maps gorm adds others with the keys that are returned.
	stray := maps.Kind() == reflect.Slice && slices.ContainsFunc(stmt.Schema.PrimaryFields, omitted)
	models.EachMap(stmt.Schema, maps, func(value func(column string) any) {
		for _, r := range t.rows.Matching(stmt, value) {
			img := image{row: r, schema: stmt.Schema, guessed: guesses, generated: generated, inserted: true}
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

// returns reports whether the INSERT has told what a column is.
func returns(stmt *gorm.Statement, f *schema.Field) bool {
	c, ok := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	return ok && slices.Contains(stmt.BuildClauses, "RETURNING") &&
		(len(c.Columns) == 0 || slices.ContainsFunc(c.Columns, func(c clause.Column) bool {
			return c.Name == "*" || c.Name == f.DBName
		}))
}

// imagesOfUpdate returns what a versioned UPDATE or DELETE has made of the rows.
func (t *Tx) imagesOfUpdate(stmt *gorm.Statement, expected models.Expected) (images []image) {
	stamp := models.Assigned[dbguard.Stamp](stmt)
	for _, loaded := range expected.Rows {
		for _, r := range t.rows.Matching(stmt, models.Values(stmt, loaded.Model)) {
			images = append(images, image{
				row: r, schema: stmt.Schema, key: models.Key(stmt, loaded.Model), deleted: !models.IsUpdate(stmt),
				from: dbguard.Version(loaded.Version), version: dbguard.Version(loaded.Version + 1), stamp: stamp,
			})
		}
	}
	return images
}

// imagesOf returns what the writes of a transaction, one after the other, have
// made of rows, as far as that can be recognised.
func imagesOf(writes []write) (images []image) {
	for _, w := range writes {
		for i := range images {
			img := &images[i]
			if len(w.images) == 0 && w.mayHaveWritten(img.row) || img.inserted && w.mayHaveRenamed(img.row) {
				img.vague = true
			}
		}
		for _, img := range w.images {
			images = latest(images, img)
		}
	}
	return slices.DeleteFunc(images, func(i image) bool { return i.vague })
}

// mayHaveWritten reports whether the write has changed a row, or may have.
func (w *write) mayHaveWritten(r *protected.Row) bool {
	return slices.Contains(w.rows, r) || !w.covers() && w.mayBeTo(r.Table) && (w.how == raw || len(w.rows) == 0)
}

// mayHaveRenamed reports whether the row may have another name since, or be gone: the
// write altered rows of its table, and that one is not known to be among them still.
func (w *write) mayHaveRenamed(r *protected.Row) bool {
	return w.how != plain && w.mayBeTo(r.Table) &&
		!slices.ContainsFunc(w.images, func(i image) bool { return i.row == r })
}

// latest adds an image in place of an earlier one of the same row.
func latest(images []image, img image) []image {
	i := slices.IndexFunc(images, func(earlier image) bool { return earlier.row == img.row })
	if i < 0 {
		return append(images, img)
	}
	earlier := images[i]
	img.vague = earlier.vague || earlier.inserted && img.deleted || earlier.deleted
	img.from = earlier.from
	if earlier.inserted {
		img.key, img.guessed, img.generated, img.inserted = earlier.key, earlier.guessed, earlier.generated, true
	}
	images[i] = img
	return images
}

// A proof is what a row says of the commit that may have written it.
type proof struct {
	outcome Outcome
	// held: it says so only if nobody without the lock has written the row since.
	held bool
}

// proof compares the row, the zero Value if it is not there, with the image.
// generates tells that no other row has ever had a key that the database made for
// this one.
func (i image) proof(ctx context.Context, row reflect.Value, generates bool) proof {
	if !row.IsValid() {
		return i.absent()
	}
	var stamp dbguard.Stamp
	if f := models.FieldOf[dbguard.Stamp](i.schema); f != nil {
		stamp = models.In[dbguard.Stamp](ctx, f, row)
	}
	if i.stamp != 0 && stamp == i.stamp {
		return proof{outcome: Committed}
	}
	var version dbguard.Version
	if f := models.FieldOf[dbguard.Version](i.schema); f != nil {
		version = models.In[dbguard.Version](ctx, f, row)
	}
	another := i.stamp != 0 && stamp != 0 && i.version != 0 && version == i.version // of two writes of one version one is committed
	switch {
	case i.inserted:
		p := i.sameKey(ctx, row, generates)
		if p.outcome == Unresolved && another {
			p = i.absent()
		}
		return p
	case i.from != 0 && version == i.from, another && !i.deleted: // or it was deleted and made again
		return proof{outcome: NotCommitted, held: true}
	}
	return proof{}
}

// sameKey tells by the primary key whether the row is the inserted one.
func (i image) sameKey(ctx context.Context, row reflect.Value, generates bool) proof {
	if len(i.key) == 0 {
		return proof{}
	}
	for n, v := range i.key {
		f := i.schema.PrimaryFields[n]
		now := models.Value(ctx, f, row)
		switch {
		case sqlvalue.Equal(now, i.row.Kept(f, v)):
		case i.guessed || !sqlvalue.IsPlainInteger(now) || !sqlvalue.IsPlainInteger(v):
			return proof{}
		default:
			return i.absent()
		}
	}
	if i.generated && generates {
		return proof{outcome: Committed}
	}
	return proof{}
}

// absent tells what it means that the row is not there. By a name that the database
// may keep in another form it may only not have been found.
func (i image) absent() proof {
	if i.inserted && !slices.ContainsFunc(i.row.Values, sqlvalue.MayChange) {
		return proof{outcome: NotCommitted, held: true}
	}
	return proof{} // another may have deleted it
}
