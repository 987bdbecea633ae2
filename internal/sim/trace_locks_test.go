package sim

import (
	"errors"
	"slices"

	"github.com/belaygo/belay/internal/model"
	"github.com/belaygo/belay/lock/lockengine"
)

// holder is who has the lock of an operation, as a story says it.
func (t *tracer) holder(o *op, key string) string {
	owner := t.w.server.state.held[key].owner
	switch {
	case owner == "":
		return "nobody has"
	case t.w.history.grantsOf(o)[key] != nil && t.w.history.grantsOf(o)[key].owner == owner:
		return "it has"
	}
	return "another has"
}

func (t *tracer) acquired(c *call, do action) {
	r, who := c.asks[0], c.op.caller()
	key := t.place(r.Key)
	t.denied[who] = do == run && unserved(c.err)
	granted := c.err == nil && do != cut && do != delay
	switch {
	case granted && do == run:
		t.seeOf(model.Granted, who, key)
		t.deadlines[r.Owner] = c.at.Add(localTTL)
	case granted:
		t.see(model.GrantUnheard, who)
	case do == run && unserved(c.err):
		t.see(model.Unserved, who)
	case do == run && errors.Is(c.err, lockengine.ErrMarked):
		t.judging[who] = true
		t.see(model.Marked, who)
	case do == run:
		t.seeOf(model.Held, who, key)
	default:
		t.seeOf(model.AcquireLost, who, key)
	}
}

func (t *tracer) renewed(c *call, do action) {
	for _, r := range c.asks {
		who, key := t.callerOf(r.Owner), t.place(r.Key)
		switch {
		case do != run, t.w.server.down:
			t.seeOf(model.RenewalLost, who, key)
		case t.w.server.state.held[r.Key].owner != r.Owner:
			t.seeOf(model.RenewedGone, who, key)
		default:
			t.seeOf(model.Renewed, who, key)
			if _, relied := t.deadlines[r.Owner]; relied {
				t.deadlines[r.Owner] = c.at.Add(localTTL)
			}
		}
	}
}

// superseded reports whether a lock is not the last that its caller has asked for. The model has
// one for each.
func (t *tracer) superseded(owner string) bool {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	all := t.w.history.grants
	return slices.ContainsFunc(t.w.history.ops, func(o *op) bool {
		i := slices.Index(o.owners, owner)
		return i >= 0 && slices.ContainsFunc(o.owners[i+1:], func(later string) bool { return all[later].key == all[owner].key })
	})
}

func (t *tracer) released(c *call, do action) {
	of, gone := t.callerOf(c.asks[0].Owner), errors.Is(c.err, lockengine.ErrNotHeld)
	what := model.Released
	switch {
	case c.op == nil && gone && t.superseded(c.asks[0].Owner):
		t.others["RELEASE of a lock that its caller has got again"]++
		return
	case c.op == nil && unserved(c.err), c.op == nil && do != run && (do == cut || gone):
		what = model.OrphanUnheard
	case c.op == nil && gone:
		what = model.OrphanAbsent
	case c.op == nil:
		what = model.OrphanReleased
	case do == cut, unserved(c.err):
		what = model.ReleaseUnsent
	case do == cutAnswer:
		what = model.ReleaseUnheard
	case gone:
		what = model.ReleasedGone
	}
	x := model.Seen{What: what, Who: of, Of: of, Key: t.place(c.asks[0].Key)}
	if c.op != nil {
		x.Who = c.op.caller()
	}
	t.take(x)
}
