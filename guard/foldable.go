package guard

import (
	"context"
	"reflect"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
)

// foldable is a step that can be made together with its like.
type foldable interface {
	step
	// target names what the step does. ok is false if the step must run alone.
	target(ctx context.Context, in *folding) (what target, ok bool)
	// fold begins the work of a crew: that of an Update loads the row.
	fold(ctx context.Context, t *dbtx.Tx, tx *gorm.DB, in *folding) (fold, error)
	// inserts returns the row, if the step inserts it.
	inserts() any
}

// fold is what a crew makes of a step that all have.
type fold interface {
	// try makes a step's change to the row as the changes before left it. The row is as
	// it was before if the change fails or panics, or undo is called. adopt makes the
	// change one of the crew's.
	try(ctx context.Context, s step) (adopt func(*dbtx.Tx), undo func(), err error)
	// save writes what was adopted.
	save(ctx context.Context, tx *gorm.DB) error
}

// folding is what is known of the database whose rows crews write.
type folding struct {
	db    *gorm.DB
	apart sync.Map // models of which no rows are inserted together: reflect.Type → true
}

// A target is what a step does: an Update changes one row, which its model and its primary
// key name; an Insert inserts some row of a model; Send inserts messages.
type target struct {
	model reflect.Type
	table string
	key   any // pairs of the values before and the last one; nil of an Insert
}

// alike returns what the members of a crew have in common, and their steps. ok is false if
// the Change must run alone: it would see in memory what others have not written yet.
func (c Change) alike(ctx context.Context, in *folding) (shape any, steps []foldable, ok bool) {
	updated := ""
	inserted := make(map[string]bool)
	for _, s := range c.all() {
		f, ok := s.(foldable)
		if !ok {
			return nil, nil, false
		}
		what, ok := f.target(ctx, in)
		switch {
		case !ok, what.key != nil && updated != "":
			return nil, nil, false
		case what.key != nil:
			updated = what.table
		default:
			inserted[what.table] = true
		}
		shape, steps = [2]any{shape, what}, append(steps, f)
	}
	return shape, steps, len(steps) > 0 && !inserted[updated]
}
