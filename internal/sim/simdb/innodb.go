package simdb

import (
	"errors"
	"slices"
)

// innodb is the engine of MariaDB.
type innodb struct{ db *Database }

// errLocked is that a row is locked, for a statement that skips those.
var errLocked = errors.New("locked")

func (e innodb) find(t *tx, sc *scan, l locking, f func(*row, []any) (bool, error)) error {
	t.lockTable(sc.table, l.mode)
	t.upserts = false
	if sc.keys == nil {
		return e.findAll(t, sc, l, f)
	}
	for _, key := range sc.keys {
		r, err := e.findKey(t, sc.index, key, l)
		if errors.Is(err, errLocked) || err == nil && r == nil {
			continue
		}
		if err != nil {
			return err
		}
		if more, err := e.use(t, sc, r, f); err != nil || !more {
			return err
		}
	}
	return nil
}

// use calls f for a locked row that matches. At READ COMMITTED it unlocks another one, unless
// the statement had to wait for it, or it was locked before.
func (e innodb) use(t *tx, sc *scan, r *record, f func(*row, []any) (bool, error)) (more bool, err error) {
	values, fresh := r.row.latest().values, t.fresh
	fits, err := sc.fits(values)
	if fits && err == nil {
		return f(r.row, values)
	}
	t.fresh = fresh
	if err != nil {
		return false, err
	}
	if t.level == readCommitted && t.fresh != nil && t.fresh.record == r && r.by != t {
		t.fresh.cancel()
	}
	return true, nil
}

// findKey locks the record of a key; nil if there is none.
func (e innodb) findKey(t *tx, i *index, key any, l locking) (*record, error) {
	for n := i.seek(key); ; {
		r := i.at(n)
		if !r.has(key) {
			if t.level == readCommitted {
				return nil, nil
			}
			waited, err := t.lockRecord(r, l.mode, gapOnly, l)
			if err != nil || !waited {
				return nil, err
			}
			n = i.seek(key)
			continue
		}
		if e.skips(t, r) {
			n++
			continue
		}
		c := recordOnly
		if !i.primary() && t.level != readCommitted {
			c = nextKey
		}
		waited, err := e.lockRow(t, r, l, c)
		switch {
		case err != nil:
			return nil, err
		case waited:
			n = i.seek(key)
		case !r.deleted:
			return r.row.records[0], nil
		case i.primary():
			return nil, nil
		default:
			n++
		}
	}
}

// skips reports whether a record is not even locked: at READ COMMITTED, if it is deleted
// for good.
func (e innodb) skips(t *tx, r *record) bool {
	return t.level == readCommitted && r.deleted && !r.by.running(t)
}

// lockRow locks a record, and that of the primary key if it is of another index.
func (e innodb) lockRow(t *tx, r *record, l locking, c cover) (waited bool, err error) {
	if err := e.unchanged(t, r); err != nil {
		return false, err
	}
	waited, err = t.lockRecord(r, l.mode, c, l)
	if waited || err != nil || r.index.primary() || r.deleted {
		return waited, err
	}
	return e.lockRow(t, r.row.records[0], l, recordOnly)
}

// unchanged returns an error if a record has changed since the snapshot, where the server
// minds.
func (e innodb) unchanged(t *tx, r *record) error {
	if e.db.personality != MariaDBSnapshot || t.view == nil || t.level == readCommitted || !r.index.primary() {
		return nil
	}
	if by := r.by; by != nil && by != t && by.committed > *t.view {
		return myErr(erCheckRead, r.index.table.name)
	}
	return nil
}

// findAll goes through the records of the primary key. Above READ COMMITTED it would lock
// all gaps, too, of which it depends on the optimizer which these are.
func (e innodb) findAll(t *tx, sc *scan, l locking, f func(*row, []any) (bool, error)) error {
	if t.level != readCommitted {
		panic(unknown("rows are locked without a key, above READ COMMITTED"))
	}
	i := sc.index
	for n := sc.start(); n < len(i.records); n++ {
		r := i.at(n)
		if e.skips(t, r) {
			continue
		}
		waited, err := e.lockRow(t, r, l, recordOnly)
		switch {
		case waited && err == nil:
			n = i.position(r) - 1
			continue
		case errors.Is(err, errLocked), err == nil && r.deleted:
			continue
		case err != nil:
			return err
		}
		if more, err := e.use(t, sc, r, f); err != nil || !more {
			return err
		}
		n = i.position(r)
	}
	return nil
}

func (e innodb) insert(t *tx, tb *table, values []any, upsert bool) (*row, error) {
	m := shared
	if upsert {
		m = exclusive
	}
	t.lockTable(tb, exclusive)
	t.upserts = upsert
	undo := len(t.undo)
	existing, err := e.insertRow(t, tb, values, m)
	e.db.yield()
	if existing == nil {
		return nil, err
	}
	t.back(undo)
	if !upsert {
		return nil, e.db.duplicate(existing)
	}
	found, err := e.findKey(t, existing.index, existing.key, locking{mode: exclusive})
	if err != nil || found == nil {
		return nil, err
	}
	return found.row, nil
}

// insertRow inserts into all indexes, and returns the record that is in the way.
func (e innodb) insertRow(t *tx, tb *table, values []any, m mode) (existing *record, err error) {
	r, existing, err := e.insertPrimary(t, tb.indexes[0], values, m)
	if existing != nil || err != nil {
		return existing, err
	}
	for _, i := range tb.indexes[1:] {
		e.db.yield()
		if existing, err := e.insertSecondary(t, i, r, values, m); existing != nil || err != nil {
			return existing, err
		}
	}
	return nil, nil
}

func (e innodb) insertPrimary(t *tx, i *index, values []any, m mode) (*row, *record, error) {
	key := values[i.column]
	for {
		r := i.at(i.seek(key))
		if !r.has(key) {
			if waited, err := t.intend(r); err != nil {
				return nil, nil, err
			} else if waited {
				continue
			}
			made := &row{table: i.table}
			t.write(made, values)
			t.addRecord(i, made, key)
			return made, nil, nil
		}
		if err := e.unchanged(t, r); err != nil {
			return nil, nil, err
		}
		waited, err := t.lockRecord(r, m, recordOnly, locking{})
		if err == nil && !waited && r.deleted {
			waited, err = t.lockRecord(r, exclusive, recordOnly, locking{})
		}
		switch {
		case err != nil:
			return nil, nil, err
		case waited:
			continue
		case !r.deleted:
			return nil, r, nil
		case len(i.table.indexes) > 1:
			panic(unknown("INSERT of a row that was deleted, with the same primary key"))
		}
		t.write(r.row, values)
		t.mark(r, false)
		return r.row, nil, nil
	}
}

func (e innodb) insertSecondary(t *tx, i *index, r *row, values []any, m mode) (*record, error) {
	key := values[i.column]
	if key == nil {
		return nil, nil
	}
	for {
		existing, waited, err := e.duplicate(t, i, key, m)
		if existing != nil || err != nil {
			return existing, err
		}
		if waited {
			continue
		}
		e.db.yield()
		next := i.at(i.position(&record{index: i, key: key, row: r}))
		if waited, err := t.intend(next); err != nil {
			return nil, err
		} else if waited {
			e.db.yield()
			continue
		}
		t.addRecord(i, r, key)
		return nil, nil
	}
}

// duplicate looks through the records of a key, and locks them with the one after them.
func (e innodb) duplicate(t *tx, i *index, key any, m mode) (existing *record, waited bool, err error) {
	n := i.seek(key)
	if !i.at(n).has(key) {
		return nil, false, nil
	}
	for ; ; n++ {
		r := i.at(n)
		if waited, err = t.lockRecord(r, m, nextKey, locking{}); waited || err != nil {
			return nil, waited, err
		}
		switch {
		case !r.has(key):
			return nil, false, nil
		case !r.deleted:
			return r, false, nil
		}
	}
}

// intend waits until the gap before a record may be inserted into.
func (t *tx) intend(next *record) (waited bool, err error) {
	return t.pass(&lock{tx: t, record: next, mode: exclusive, cover: gapOnly, insert: true})
}

// pass waits until a lock can be had. One that can be had at once is implicit, and not kept.
func (t *tx) pass(want *lock) (waited bool, err error) {
	if want.blocker(want.record.locks) == nil {
		return false, nil
	}
	return t.request(want, locking{})
}

// addRecord adds a record, to which the locks of the gap that it divides extend.
func (t *tx) addRecord(i *index, r *row, key any) {
	made := r.record(i, key)
	made.by = t
	next := i.after(made)
	i.add(made)
	for _, l := range slices.Clone(next.locks) {
		if !l.insert && (next == i.supremum || l.cover != recordOnly) {
			made.addGap(l)
		}
	}
	t.undo = append(t.undo, func() {
		made.inherit(t.session.db)
		i.remove(made)
	})
}

// mark marks a record as deleted, or not.
func (t *tx) mark(r *record, deleted bool) {
	was, by := r.deleted, r.by
	r.deleted, r.by = deleted, t
	t.undo = append(t.undo, func() { r.deleted, r.by = was, by })
}

func (e innodb) update(t *tx, r *row, values []any) error {
	t.write(r, values)
	t.mark(r.records[0], false)
	return nil
}

// delete marks the records of a row that is locked. Those of other indexes may be locked
// by somebody who waits for the row.
func (e innodb) delete(t *tx, r *row) error {
	t.write(r, nil)
	t.mark(r.records[0], true)
	for _, rec := range r.records[1:] {
		e.db.yield()
		if _, err := t.pass(&lock{tx: t, record: rec, mode: exclusive, cover: recordOnly}); err != nil {
			return err
		}
		t.mark(rec, true)
	}
	return nil
}
