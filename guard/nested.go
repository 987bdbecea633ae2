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
	outer, ok := ctx.Value(scopeKey{}).(*scope)
	switch {
	case c.request != nil:
		return fmt.Errorf("%w: a request is served by an operation of its own", ErrNested)
	case !ok:
		return fmt.Errorf("%w: the context carries a guarded transaction that no Do has begun", ErrNested)
	case outer.keys.layer != c.guard.layer:
		return fmt.Errorf("%w: key %q of one Guard inside key %q of another", ErrNested, c.plan.main, outer.keys.plan.main)
	}
	plan := outer.keys.plan
	for i := range c.plan.keys {
		if key := c.plan.keys[i].key; plan.find(key) == nil {
			return fmt.Errorf("%w: key %q inside key %q: two operations would wait for each other. "+
				"Give the outer Do all keys, with Also", ErrNested, key, plan.main)
		}
	}
	if c.plan.namesRowsUnder(plan.request()) {
		return errRowsOfRequest
	}
	if err := c.plan.protect(t); err != nil {
		return err
	}
	defer t.Under(plan.protecting(c.plan.main))()
	ctx = &scope{Context: ctx, keys: outer.keys, origin: outer.origin.within(c.plan.main)}
	tx := t.DB().Session(&gorm.Session{Context: ctx})
	tx.DisableNestedTransaction = false // or what failed would stay
	return tx.Transaction(func(tx *gorm.DB) error { return c.work.op(ctx, tx) })
}
