package simdb

import (
	"errors"
	"slices"
	"time"
)

// heap is the engine of PostgreSQL.
type heap struct{ db *Database }

// A holder is a transaction that has locked a row, or waits for it.
type holder struct {
	tx   *tx
	mode mode
}

func (h holder) conflicts(t *tx, m mode) bool {
	return h.tx != t && !h.tx.ended && (h.mode != shared || m != shared)
}

func (e heap) find(t *tx, sc *scan, l locking, f func(*row, []any) (bool, error)) error {
	for _, r := range sc.rows() {
		values := t.read(r)
		if values == nil {
			continue
		}
		if fits, err := sc.fits(values); err != nil || !fits {
			continue
		}
		ok, err := e.hold(t, r, l)
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return err
		}
		values = r.latest().values
		if !ok || values == nil {
			continue
		}
		if fits, err := sc.fits(values); err != nil || !fits {
			continue
		}
		if more, err := f(r, values); err != nil || !more {
			return err
		}
	}
	return nil
}

// hold locks a row. It reports false if the row has been deleted. A transaction with one
// view for all its statements gets an error if the row has changed since.
func (e heap) hold(t *tx, r *row, l locking) (ok bool, err error) {
	changed := func(v version) bool { return v.by != nil && v.by.committed > 0 && !t.sees(v) }
	if t.level == repeatableRead && slices.ContainsFunc(r.versions, changed) && r.latest().by.running(t) {
		return false, errChanged()
	}
	if err := e.turn(t, r, l); err != nil {
		return false, err
	}
	switch last := r.latest(); {
	case t.level == repeatableRead && !t.sees(last):
		return false, errChanged()
	case last.values == nil:
		return false, nil
	}
	r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return h.tx.ended })
	if !slices.ContainsFunc(r.holders, func(h holder) bool { return h.tx == t && h.mode >= l.mode }) {
		own := holder{t, l.mode}
		r.holders = append(r.holders, own)
		e.db.numbered(t)
		t.undo = append(t.undo, func() { r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return h == own }) })
	}
	return true, nil
}

func errChanged() error { return pgErr("40001", "could not serialize access due to concurrent update") }

// turn waits for those that have locked a row, behind those that wait already, unless the
// transaction has locked it, too.
func (e heap) turn(t *tx, r *row, l locking) error {
	queued := false
	defer func() {
		if queued {
			e.leave(t, r)
		}
	}()
	for {
		others := r.holders
		if v := r.latest(); v.by.running(t) {
			others = append(slices.Clip(others), holder{v.by, exclusive})
		}
		blocker := first(others, t, l.mode)
		if blocker == nil {
			return nil
		}
		switch {
		case l.skip:
			return errLocked
		case l.nowait:
			return pgErr("55P03", "could not obtain lock on row in relation")
		}
		if !slices.ContainsFunc(r.holders, func(h holder) bool { return h.tx == t }) {
			if !queued {
				r.queue, queued = append(r.queue, holder{t, l.mode}), true
			}
			if ahead := first(r.queue[:r.place(t)], t, l.mode); ahead != nil {
				blocker = ahead
			}
		}
		versions := len(r.versions)
		if err := e.wait(t, blocker); err != nil {
			return err
		}
		if queued && len(r.versions) != versions { // the next version has a queue of its own
			e.leave(t, r)
			queued = false
			e.db.yield()
		}
	}
}

func (r *row) place(t *tx) int {
	return slices.IndexFunc(r.queue, func(h holder) bool { return h.tx == t })
}

// leave takes a transaction out of the queue, and lets those behind it look again.
func (e heap) leave(t *tx, r *row) {
	n := r.place(t)
	r.queue = slices.Delete(r.queue, n, n+1)
	for _, h := range r.queue[n:] {
		if h.tx.blocker == t {
			t.dismiss(h.tx)
		}
	}
}

func first(holders []holder, t *tx, m mode) *tx {
	for _, h := range holders {
		if h.conflicts(t, m) {
			return h.tx
		}
	}
	return nil
}

// wait waits until a transaction has ended, or gone back to a savepoint. A transaction
// that has waited for long enough looks once for a deadlock, and is its victim.
func (e heap) wait(t *tx, blocker *tx) error {
	w := newWaiter()
	t.waits, t.blocker = w, blocker
	blocker.ends = append(blocker.ends, t)
	limit := deadlockTimeout
	if e.db.pick != nil && e.db.pick(2) == 1 {
		limit = 0 // it looks before there is one: a real server may be slow
	}
	if t.limit > 0 {
		defer time.AfterFunc(t.session.apart(t.limit), func() {
			e.db.with(func() { e.db.wake(w, pgErr("55P03", "canceling statement due to lock timeout")) })
		}).Stop()
	}
	err := e.db.await(w, t.session.apart(limit), func() {
		if t.deadlocked() {
			e.db.wake(w, pgErr("40P01", "deadlock detected"))
		}
	})
	blocker.ends = slices.DeleteFunc(blocker.ends, func(o *tx) bool { return o == t })
	t.blocker = nil
	return err
}

func (t *tx) deadlocked() bool {
	n := 0
	for other := t.blocker; other != nil && n <= len(t.session.db.sessions); other = other.blocker {
		if n++; other == t {
			return true
		}
	}
	return false
}

// dismiss lets a transaction that waits for t look again.
func (t *tx) dismiss(other *tx) {
	t.ends = slices.DeleteFunc(t.ends, func(o *tx) bool { return o == other })
	t.session.db.wake(other.waits, nil)
}

// dismissAll does so for all.
func (t *tx) dismissAll() {
	for len(t.ends) > 0 {
		t.dismiss(t.ends[0])
	}
}

func (e heap) insert(t *tx, tb *table, values []any, upsert bool) (*row, error) {
	if upsert {
		for _, i := range tb.indexes {
			existing, err := e.conflict(t, i, values)
			if existing != nil && t.level == repeatableRead && !t.sees(existing.latest()) {
				err = errChanged()
			}
			if existing != nil || err != nil {
				return existing, err
			}
		}
	}
	made := &row{table: tb}
	t.write(made, values)
	for _, i := range tb.indexes {
		rec := made.record(i, values[i.column])
		existing, err := e.conflict(t, i, values)
		if err == nil && existing != nil {
			err = e.db.duplicate(rec)
		}
		if err != nil {
			return nil, err
		}
		i.add(rec)
		t.undo = append(t.undo, func() { i.remove(rec) })
		e.db.yield()
	}
	return nil, nil
}

// conflict returns the row with the key of some values, once whoever writes one has ended.
func (e heap) conflict(t *tx, i *index, values []any) (*row, error) {
	key := values[i.column]
	if key == nil {
		return nil, nil
	}
	for n := i.seek(key); i.at(n).has(key); n++ {
		r := i.records[n].row
		switch last := r.latest(); {
		case last.by.running(t):
			if err := e.wait(t, last.by); err != nil {
				return nil, err
			}
			n = i.seek(key) - 1
		case last.values != nil:
			return r, nil
		}
	}
	return nil, nil
}

func (e heap) update(t *tx, r *row, values []any) error {
	ok, err := e.hold(t, r, locking{mode: noKey})
	if ok {
		t.write(r, values)
	}
	return err
}

func (e heap) delete(t *tx, r *row) error {
	t.write(r, nil)
	return nil
}

// fail undoes what was done since the last savepoint. The transaction takes nothing but a
// ROLLBACK then, and whoever waits for what it has given back goes on.
func (t *tx) fail() {
	to := 0
	if n := len(t.savepoints); n > 0 {
		to = t.savepoints[n-1].undo
	}
	t.back(to)
	t.failed = true
	t.ended = to == 0 && len(t.savepoints) == 0
	t.dismissAll()
}
