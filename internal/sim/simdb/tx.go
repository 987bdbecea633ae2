package simdb

import (
	"slices"
	"time"
)

// Levels of isolation.
const (
	readCommitted  = "READ-COMMITTED"
	repeatableRead = "REPEATABLE-READ"
	snapshot       = "SNAPSHOT" // REPEATABLE READ, with a view from the beginning
)

// A tx is a transaction.
type tx struct {
	session    *session
	level      string
	joined     bool   // it has read or written rows, or has a snapshot
	number     int64  // on PostgreSQL, once it has written
	ended      bool   // committed or rolled back
	committed  int64  // its place among the commits; 0 if it is not committed
	view       *int64 // up to which commit its plain reads see
	failed     bool   // PostgreSQL takes nothing but a ROLLBACK
	undo       []func()
	wrote      int // rows, of which an undo log has records
	savepoints []savepoint

	locks      []*lock // InnoDB's
	tables     []tableLock
	structures int   // that keep its locks
	fresh      *lock // the last one, if it was granted at once and was not there before
	kinds      map[lockKind]int64
	upserts    bool  // its statement is an INSERT ON DUPLICATE KEY UPDATE
	waiting    *lock // InnoDB's, that it waits for
	waits      *waiter
	awaits     bool // it has found no deadlock, and waits
	blocker    *tx  // what it waits for

	ends  []*tx         // PostgreSQL: who waits for its end
	limit time.Duration // PostgreSQL's lock_timeout, 0 = none
}

type savepoint struct {
	name   string
	undo   int
	joined bool // InnoDB took part in the transaction by then
}

// sees reports whether a plain read of the transaction sees a version.
func (t *tx) sees(v version) bool { return v.seen(*t.view, t) }

// read returns the values of a row that the transaction sees; nil if there is none.
func (t *tx) read(r *row) []any { return r.at(*t.view, t) }

// look gives the transaction a view for its next plain read.
func (t *tx) look() {
	if t.view == nil || t.level == readCommitted {
		upTo := t.session.db.visible(t.session)
		t.view = &upTo
	}
}

// running reports whether a transaction is another one that has not ended.
func (t *tx) running(me *tx) bool { return t != nil && t != me && !t.ended }

// write adds a version to a row, until a rollback.
func (t *tx) write(r *row, values []any) {
	r.versions = append(r.versions, version{by: t, values: values})
	t.session.db.numbered(t)
	t.wrote++
	t.undo = append(t.undo, func() {
		r.versions = r.versions[:len(r.versions)-1]
		t.wrote--
	})
}

// back undoes what was done after a point.
func (t *tx) back(to int) {
	defer t.session.db.watchRace()()
	for len(t.undo) > to {
		last := t.undo[len(t.undo)-1]
		t.undo = t.undo[:len(t.undo)-1]
		last()
		if !t.session.db.postgres() {
			t.session.db.yield()
		}
	}
}

// end ends a transaction. Whoever waits for it goes on, in the order of the locks.
func (t *tx) end(commit bool) {
	db := t.session.db
	if !commit {
		defer db.watchRace()()
	}
	if commit && t.wrote > 0 {
		db.commits++
		t.committed = db.commits
	} else {
		t.back(0)
	}
	t.ended = true
	t.session.tx = nil
	if db.postgres() {
		t.dismissAll()
		return
	}
	t.releaseLocks()
}

// watchRace notes whether a rollback wakes several at once. A real server lets them run before
// the rollback is done.
func (db *Database) watchRace() func() {
	before := db.wakes
	return func() { db.raced = db.raced || db.wakes > before+1 }
}

func (t *tx) save(name string) {
	if !t.session.db.postgres() { // it replaces one of the same name
		t.savepoints = slices.DeleteFunc(t.savepoints, func(s savepoint) bool { return s.name == name })
	}
	t.savepoints = append(t.savepoints, savepoint{name, len(t.undo), t.joined})
}
