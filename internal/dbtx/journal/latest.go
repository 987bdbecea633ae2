package journal

import (
	"slices"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// Images returns what the writes of a transaction, one after the other, have
// made of rows, as far as that can be recognised.
func Images(writes []Write) (images []Image) {
	for _, w := range writes {
		for i := range images {
			img := &images[i]
			if len(w.Images) == 0 && w.mayHaveWritten(img.Row) || img.inserted && w.mayHaveRenamed(img.Row) {
				img.vague = true
			}
		}
		for _, img := range w.Images {
			images = latest(images, img)
		}
	}
	return slices.DeleteFunc(images, func(i Image) bool { return i.vague })
}

// latest adds an image in place of an earlier one of the same row.
func latest(images []Image, img Image) []Image {
	i := slices.IndexFunc(images, func(earlier Image) bool { return earlier.Row == img.Row })
	if i < 0 {
		return append(images, img)
	}
	earlier := images[i]
	img.vague = earlier.vague || earlier.inserted && img.deleted || earlier.deleted
	img.From = earlier.From
	if earlier.inserted {
		img.key, img.guessed, img.generated, img.inserted = earlier.key, earlier.guessed, earlier.generated, true
	}
	images[i] = img
	return images
}

// ByKey returns the row by its primary key, where it may be though it is not found by its
// name: the database may keep that in another form. It returns nil if the row was not
// inserted, or if the key is not known.
func (i Image) ByKey() *protected.Row {
	if !i.inserted || len(i.key) == 0 || i.guessed {
		return nil
	}
	return &protected.Row{Table: i.Row.Table, Schema: i.Schema, Fields: i.Schema.PrimaryFields, Values: i.key}
}
