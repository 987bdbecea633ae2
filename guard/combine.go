package guard

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
)

var errCombineDo = errors.New("guard: Combine is an option of Apply: what an operation does can't be combined")

// foldable is a step that can be made together with its like.
type foldable interface {
	step
	// target names what the step does. ok is false if the step must run alone.
	target(ctx context.Context, g *Guard) (what target, ok bool)
	// fold begins the work of a crew: that of an Update loads the row.
	fold(ctx context.Context, t *dbtx.Tx, tx *gorm.DB) (fold, error)
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

// A target is what a step does: an Update changes one row, which its model and its primary
// key name; an Insert inserts some row of a model.
type target struct {
	model reflect.Type
	table string
	key   any // pairs of the values before and the last one; nil of an Insert
}

// alike returns what the members of a crew have in common, and their steps. ok is false if
// the Change must run alone: it would see in memory what others have not written yet.
func (c Change) alike(ctx context.Context, g *Guard) (shape any, steps []foldable, ok bool) {
	updated := ""
	inserted := make(map[string]bool)
	for _, s := range c.steps {
		f, ok := s.(foldable)
		if !ok {
			return nil, nil, false
		}
		what, ok := f.target(ctx, g)
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

// member returns the call as one that may share its transaction, nil if it runs alone.
func (c *call) member(ctx context.Context) *member {
	alike := c.combine && c.wait > 0 && !ended(ctx) && len(c.holds) == 1 && c.remember == 0 && len(c.protects) == 0 && !c.isRequests(c.key) && c.retries == changeTries
	if !alike || c.guard.outages.on(c.key) != nil || c.guard.locker.Holds(ctx, c.key) {
		return nil
	}
	shape, steps, ok := c.change.alike(ctx, c.guard)
	if !ok {
		return nil
	}
	return &member{call: c, ctx: ctx, steps: steps, shape: shape, serves: c.claiming, turn: make(chan signal, 1)}
}

// lines are the callers that wait to share a transaction, by key.
type lines struct {
	turnTime time.Duration // see turnTime
	apart    sync.Map      // models of which no rows are inserted together: reflect.Type → true

	mu sync.Mutex
	of map[string]*line
}

// A line exists while just one of its callers leads: that one acquires the lock for all.
type line struct{ queue []*member }

// join adds m to the line of its key. It reports whether m leads.
func (l *lines) join(m *member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.of[m.call.key]; at != nil {
		at.queue = append(at.queue, m)
		return false
	}
	l.of[m.call.key] = new(line)
	return true
}

// quit takes m out of its line. It reports false if m's turn has come.
func (l *lines) quit(m *member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[m.call.key]
	if at == nil {
		return false
	}
	for i, other := range at.queue {
		if other == m {
			at.queue = append(at.queue[:i], at.queue[i+1:]...)
			return true
		}
	}
	return false
}

// take returns the next in the line who do what the leader does, at most n, and lets the
// first of the rest lead.
func (l *lines) take(leader *member, n int) (crew []*member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := leader.call.key
	at := l.of[key]
	rest := at.queue[:0]
	for _, m := range at.queue {
		switch {
		case m.gone():
		case len(crew) < n && m.shape == leader.shape:
			crew = append(crew, m)
		default:
			rest = append(rest, m)
		}
	}
	clear(at.queue[len(rest):])
	at.queue = rest
	l.promote(key, at)
	return crew
}

// promote has the first of a line lead, or removes an empty one. The caller holds l.mu.
func (l *lines) promote(key string, at *line) {
	for len(at.queue) > 0 {
		next := at.queue[0]
		at.queue = at.queue[1:]
		if next.use() {
			next.turn <- turnLead
			return
		}
	}
	delete(l.of, key)
}

// giveBack puts members whose turn did not come at the head of their line. Those who do
// not wait any longer try once more alone.
func (l *lines) giveBack(key string, members []*member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var waiting []*member
	for _, m := range members {
		if m.spare(); m.waits() {
			waiting = append(waiting, m)
		} else {
			m.turn <- turnAlone
		}
	}
	if at := l.of[key]; at != nil {
		at.queue = append(waiting, at.queue...)
		return
	}
	at := &line{queue: waiting}
	l.of[key] = at
	l.promote(key, at)
}
