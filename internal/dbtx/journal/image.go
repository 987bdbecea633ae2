package journal

import (
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
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
	rekeyed   bool               // an update has set the primary key
	renamed   bool               // the inserted row may have another name by now, and be found by none
	vague     bool               // the write may have left the row as it was, or its result is unknown
	From      rowversion.Version // the version before the transaction
	version   rowversion.Version // 0 = the row has none
	stamp     rowversion.Stamp   // 0 = the row has none
	triggers  bool               // may have set another stamp
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

// OnTriggers returns the image of a write to a table with triggers.
func (i Image) OnTriggers() Image {
	i.triggers = true
	return i
}

// Inserted returns the images of those rows that a plain INSERT has written.
func Inserted(rows *protected.Rows, w *statement.Write) (images []Image) {
	for _, made := range w.Images {
		for r := range rows.Matching(w.Table, made.Value) {
			images = append(images, Image{
				Row: r, Model: w.Model, key: made.Key, guessed: made.Guessed, generated: made.Generated, inserted: true,
				version: made.Version, stamp: made.Stamp,
			})
		}
	}
	return images
}

// Updated returns the images of those rows that a versioned UPDATE or DELETE has written.
func Updated(rows *protected.Rows, w *statement.Write) (images []Image) {
	for _, loaded := range w.Expected {
		for r := range rows.Matching(w.Table, loaded.Value) {
			images = append(images, Image{
				Row: r, Model: w.Model, key: loaded.Key, deleted: w.Deletes, rekeyed: w.Rekeys,
				From: loaded.Version, version: loaded.Version + rowversion.Version(w.Steps), stamp: w.Stamp,
			})
		}
	}
	return images
}
