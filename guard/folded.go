package guard

import (
	"context"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
)

// folded is what a crew makes of the Changes of its members, step by step.
type folded struct {
	steps []fold
	n     int // Changes that were adopted
}

// foldAll begins the work of a crew whose members have the steps of one of them.
func foldAll(ctx context.Context, t *dbtx.Tx, tx *gorm.DB, in *folding, steps []foldable) (*folded, error) {
	all := &folded{}
	for _, s := range steps {
		f, err := s.fold(ctx, t, tx, in)
		if err != nil {
			return nil, err
		}
		all.steps = append(all.steps, f)
	}
	return all, nil
}

// try makes the Change of a member. All its rows are as they were before if one step fails
// or panics, or the second function is called. The first one makes the Change one of the crew's.
func (f *folded) try(ctx context.Context, steps []foldable) (func(*dbtx.Tx), func(), error) {
	var adopts []func(*dbtx.Tx)
	var undos []func()
	undo := func() {
		for _, u := range undos {
			u()
		}
	}
	made := false
	defer func() {
		if !made {
			undo()
		}
	}()
	for i, s := range steps {
		a, u, err := f.steps[i].try(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		adopts, undos = append(adopts, a), append(undos, u)
	}
	made = true
	return func(t *dbtx.Tx) {
		for _, a := range adopts {
			a(t)
		}
		f.n++
	}, undo, nil
}

// save writes what was adopted, step by step.
func (f *folded) save(ctx context.Context, tx *gorm.DB) error {
	for _, s := range f.steps {
		if err := s.save(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
