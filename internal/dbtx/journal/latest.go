package journal

import (
	"slices"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// Images returns the rows as the writes of a transaction, one after the other, have
// left them, as far as they can be recognized.
func (j *Journal) Images() (images []Image) {
	for _, w := range j.Writes() {
		if w.isMessage() {
			continue
		}
		for i := range images {
			img := &images[i]
			if len(w.Images) == 0 && w.mayHaveWritten(img.Row) || img.inserted && w.mayHaveRenamed(img.Row) {
				img.vague = true
			}
			img.renamed = img.renamed || j.byParent(&w, img.Row) // or deleted: that it is missing proves nothing
		}
		for _, img := range w.Images {
			images = latest(images, img)
		}
	}
	return slices.DeleteFunc(images, func(i Image) bool { return i.vague })
}

// latest adds an image, or replaces an earlier one of its row.
func latest(images []Image, img Image) []Image {
	i := slices.IndexFunc(images, func(earlier Image) bool { return earlier.Row == img.Row })
	if i < 0 {
		return append(images, img)
	}
	earlier := images[i]
	img.vague = earlier.vague || earlier.inserted && img.deleted || earlier.deleted
	img.From = earlier.From
	if earlier.inserted && !img.inserted { // or the first one has another name by now
		img = img.ofInserted(earlier)
	}
	images[i] = img
	return images
}

// ofInserted returns the image of an update of a row that the transaction has inserted. An update may have
// given the row another name. Then only its primary key finds it.
func (i Image) ofInserted(earlier Image) Image {
	i.inserted, i.key = true, nil
	if i.Model.Declares(earlier.Model) { // by the same columns
		i.key, i.guessed, i.generated = earlier.key, earlier.guessed, earlier.generated
	}
	i.renamed = earlier.renamed || i.rekeyed || i.ByKey() == nil
	return i
}

// ByKey returns the row named by its primary key, for an inserted row that is not found
// by its name: the database may store that in another form. It returns nil if the row was
// not inserted, or if the key is unknown.
func (i Image) ByKey() *protected.Row {
	if !i.inserted || len(i.key) == 0 || i.guessed {
		return nil
	}
	return &protected.Row{Table: i.Row.Table, Model: i.Model, Columns: i.Model.Primary(), Values: i.key}
}
