package guard

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
)

// nest runs the operation of a Do inside the operation that ctx comes from, in
// a savepoint of its transaction. Its judgement is left to the outer Do: only
// there it is known what becomes of both.
func (c *call) nest(ctx context.Context, t *dbtx.Tx) error {
	outer, _ := ctx.Value(callKey{}).(*call)
	switch {
	case c.claiming != nil:
		return fmt.Errorf("%w: a request is served by an operation of its own", ErrNested)
	case outer == nil:
		return fmt.Errorf("%w: the context carries a guarded transaction that no Do has begun", ErrNested)
	case outer.guard != c.guard:
		return fmt.Errorf("%w: key %q of one Guard inside key %q of another", ErrNested, c.key, outer.key)
	}
	for i := range c.holds {
		if key := c.holds[i].key; outer.hold(key) == nil {
			return fmt.Errorf("%w: key %q inside key %q: two operations would wait for each other. "+
				"Give the outer Do all keys, with Also", ErrNested, key, outer.key)
		}
	}
	if err := c.protect(t); err != nil {
		return err
	}
	defer t.Under(c.key)()
	tx := t.DB().Session(&gorm.Session{Context: ctx})
	tx.DisableNestedTransaction = false // or what failed would stay
	return tx.Transaction(func(tx *gorm.DB) error { return c.op(ctx, tx) })
}
