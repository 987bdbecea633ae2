package simdb

import "slices"

// A mode is how strongly a row is locked.
type mode int

const (
	shared    mode = iota + 1
	noKey          // PostgreSQL: by an UPDATE that leaves the keys as they are
	exclusive      // InnoDB knows only this and shared
)

// What a lock of InnoDB covers: a record, the gap before it, or both.
type cover int

const (
	nextKey cover = iota
	gapOnly
	recordOnly
)

// A lock is one of InnoDB, granted or waited for.
type lock struct {
	tx     *tx
	record *record
	mode   mode
	cover  cover
	insert bool // it is the intention to insert into the gap
	waits  bool
	made   int64 // which of the structures it is in
}

// conflicts reports whether a request has to wait for a lock that is before it.
func (l *lock) conflicts(other *lock) bool {
	switch {
	case l.tx == other.tx || l.mode == shared && other.mode == shared:
		return false
	case (l.record == l.record.index.supremum || l.cover == gapOnly) && !l.insert:
		return false // gaps are only kept from inserts
	case !l.insert && other.cover == gapOnly:
		return false
	case l.cover == gapOnly && other.cover == recordOnly:
		return false
	}
	return !other.insert
}

// covers reports whether a lock that is held makes a request needless.
func (l *lock) covers(want *lock) bool {
	end := l.record == l.record.index.supremum
	return l.tx == want.tx && !l.waits && !l.insert && l.mode >= want.mode &&
		(l.cover != recordOnly || want.cover == recordOnly || end) &&
		(l.cover != gapOnly || want.cover == gapOnly || end)
}

// blocker returns the first lock that a request has to wait for; ahead are those before
// it in the queue. Whoever has the record already passes those that wait for it.
func (l *lock) blocker(ahead []*lock) *lock {
	has := false
	for _, other := range ahead {
		if other == l {
			return nil
		}
		has = has || other.tx == l.tx && !other.waits && other.cover != gapOnly && other.mode >= l.mode
		if passes := has && other.waits && !l.insert; !passes && l.conflicts(other) {
			return other
		}
	}
	return nil
}

// lockRecord locks a record. It reports whether it had to wait: the record may be
// another one since.
func (t *tx) lockRecord(r *record, m mode, c cover, how locking) (waited bool, err error) {
	t.fresh = nil
	if m == noKey {
		m = exclusive
	}
	if r == r.index.supremum {
		c = nextKey
	} else {
		if r.by == t && !t.ended && c == recordOnly {
			return false, nil // by its implicit lock
		}
		r.explicit(t)
	}
	want := &lock{tx: t, record: r, mode: m, cover: c}
	if slices.ContainsFunc(r.locks, func(l *lock) bool { return l.covers(want) }) {
		return false, nil
	}
	return t.request(want, how)
}

// A tableLock is the intention to lock rows of a table. None is ever in the way of another.
type tableLock struct {
	table *table
	mode  mode
}

func (t *tx) lockTable(tb *table, m mode) {
	m = min(m, noKey)
	if !slices.ContainsFunc(t.tables, func(l tableLock) bool { return l.table == tb && l.mode >= m }) {
		t.tables = append(t.tables, tableLock{tb, m})
	}
}

// explicit makes a lock of the implicit one that another transaction has.
func (r *record) explicit(me *tx) {
	if !r.by.running(me) {
		return
	}
	held := &lock{tx: r.by, record: r, mode: exclusive, cover: recordOnly}
	if !slices.ContainsFunc(r.locks, func(l *lock) bool { return l.covers(held) }) {
		held.add()
	}
}

// A lockKind is what the locks have in common that InnoDB keeps in one structure.
type lockKind struct {
	index  *index
	mode   mode
	cover  cover
	insert bool
}

func (l *lock) kind() lockKind { return lockKind{l.record.index, l.mode, l.cover, l.insert} }

// add adds a lock to the queue of its record, in the order in which the structures were
// made. One that waits, or that comes where others wait, has a structure of its own.
func (l *lock) add() {
	t, k := l.tx, l.kind()
	l.made = t.kinds[k]
	if l.waits || l.made == 0 || slices.ContainsFunc(l.record.locks, func(o *lock) bool { return o.waits }) {
		db := t.session.db
		db.structures++
		l.made = db.structures
		t.structures++
	}
	if !l.waits {
		t.know(l)
	}
	at := len(l.record.locks)
	for at > 0 && l.record.locks[at-1].made > l.made {
		at--
	}
	l.record.locks = slices.Insert(l.record.locks, at, l)
	t.locks = append(t.locks, l)
}

// request adds a lock, and waits until it is granted.
func (t *tx) request(want *lock, how locking) (waited bool, err error) {
	blocker := want.blocker(want.record.locks)
	if blocker == nil {
		want.add()
		t.fresh = want
		return false, nil
	}
	db := t.session.db
	switch {
	case how.skip:
		return false, errLocked
	case how.nowait, t.session.wait == 0:
		return false, myErr(erLockTimeout)
	}
	want.waits = true
	want.add()
	t.waiting, t.waits, t.blocker = want, newWaiter(), blocker.tx
	victim := db.resolve(t)
	db.recheck()
	if victim == t {
		return true, myErr(erDeadlock)
	}
	w := t.waits
	t.awaits = true
	err = db.await(w, t.session.apart(t.session.wait), func() { db.wake(w, myErr(erLockTimeout)) })
	t.awaits = false
	if err != nil && t.waiting != nil {
		want.cancel()
		db.recheck()
	}
	return true, err
}

// cancel takes back a request, or gives back a lock.
func (l *lock) cancel() {
	if l.waits {
		l.waits = false
		l.tx.structures--
		l.tx.waiting, l.tx.blocker = nil, nil
	}
	l.tx.locks = without(l.tx.locks, l)
	l.record.locks = without(l.record.locks, l)
	l.record.grant(l.tx.session.db)
}

// know notes the structure of a lock for others of its kind; the first one is used.
func (t *tx) know(l *lock) {
	k := l.kind()
	if t.kinds == nil {
		t.kinds = make(map[lockKind]int64)
	}
	if was := t.kinds[k]; was == 0 || l.made < was {
		t.kinds[k] = l.made
	}
}

func without(locks []*lock, l *lock) []*lock {
	if i := slices.Index(locks, l); i >= 0 {
		return slices.Delete(locks, i, i+1)
	}
	return locks
}

// grant grants the requests for which nothing is in the way any more, in their order.
func (r *record) grant(db *Database) {
	for _, l := range slices.Clone(r.locks) {
		if !l.waits {
			continue
		}
		if b := l.blocker(r.locks); b != nil {
			l.tx.blocker = b.tx
			if b.tx.blocker != nil && !slices.Contains(db.doubted, b.tx) {
				db.doubted = append(db.doubted, b.tx)
			}
			continue
		}
		l.granted(db)
	}
}

func (l *lock) granted(db *Database) {
	l.waits = false
	l.tx.know(l)
	l.tx.waiting, l.tx.blocker = nil, nil
	db.wake(l.tx.waits, nil)
}

// releaseLocks gives all locks back, the last one first.
func (t *tx) releaseLocks() {
	for len(t.locks) > 0 {
		t.locks[len(t.locks)-1].cancel()
	}
	t.session.db.recheck()
}

// recheck looks for the deadlocks of transactions that others have come to wait for.
func (db *Database) recheck() {
	for len(db.doubted) > 0 {
		n := 0
		if db.pick != nil && len(db.doubted) > 1 { // the server's order is that of addresses
			n = db.pick(len(db.doubted))
		}
		t := db.doubted[n]
		db.doubted = slices.Delete(db.doubted, n, n+1)
		db.resolve(t)
	}
}

// inherit passes the locks of a record that goes on to the gap that it leaves. Its
// waiters try again.
func (r *record) inherit(db *Database) {
	heir := r.index.after(r)
	for _, l := range slices.Clone(r.locks) {
		if !l.insert && (l.tx.level != readCommitted || (l.mode == shared) != l.tx.upserts) {
			heir.addGap(l)
		}
	}
	for _, l := range slices.Clone(r.locks) {
		l.tx.locks = without(l.tx.locks, l)
		if l.waits {
			l.granted(db)
		}
	}
	r.locks = nil
}

// addGap locks the gap before r for the transaction of another lock.
func (r *record) addGap(l *lock) {
	gap := &lock{tx: l.tx, record: r, mode: l.mode, cover: gapOnly}
	if !slices.ContainsFunc(r.locks, func(h *lock) bool {
		return h.tx == gap.tx && !h.waits && h.mode == gap.mode && h.cover == gapOnly && !h.insert
	}) {
		gap.add()
	}
}

// weight is what a rollback would cost: the transaction with the least is the victim of a
// deadlock.
func (t *tx) weight() int { return t.wrote + len(t.tables) + t.structures }

// resolve looks for a deadlock that t's waiting closes, and has a victim's request
// fail: the lightest one, of equal ones t. It returns the victim.
func (db *Database) resolve(t *tx) *tx {
	victim := t
	n := 0
	for other := t.blocker; other != t; other = other.blocker {
		if n++; other == nil || n > len(db.sessions) {
			return nil
		}
		if other.weight() < victim.weight() {
			victim = other
		}
	}
	victim = db.nearlyAs(victim, t)
	if victim != t || victim.awaits {
		db.wake(victim.waits, myErr(erDeadlock))
	}
	victim.waiting.cancel()
	return victim
}

// nearlyAs lets a test choose among the transactions of a deadlock that weigh at most one
// structure more than the lightest: a page may have been split since, or compacted.
func (db *Database) nearlyAs(victim, t *tx) *tx {
	if db.pick == nil {
		return victim
	}
	near := []*tx{victim}
	for other, first := t, true; first || other != t; other, first = other.blocker, false {
		if other != victim && other.weight() <= victim.weight()+1 {
			near = append(near, other)
		}
	}
	return near[db.pick(len(near))]
}
