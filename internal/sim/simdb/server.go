package simdb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A session is one of the server's.
type session struct {
	db      *Database
	id      int64
	started time.Time
	next    string // the level of its next transaction, if that has another one
	tx      *tx
	busy    bool // it executes a statement
	killed  bool // it ends with the statement that it executes
	ended   bool
	second  bool          // it is on the second node
	cause   error         // what its client reads of its end; nil if nothing
	flush   func()        // passes the gate, before a COMMIT is acknowledged
	flushes int64         // the number of the transaction whose COMMIT is being flushed, if it has one
	commits bool          // a COMMIT is being flushed
	wait    time.Duration // innodb_lock_wait_timeout
}

// apart returns a limit that differs between sessions: of two timers that end at once, any
// could be the first.
func (s *session) apart(limit time.Duration) time.Duration {
	return limit + time.Duration(s.id)*time.Microsecond
}

func (db *Database) newSession() *session {
	db.lastID++
	s := &session{db: db, id: db.lastID, started: time.Now(), wait: lockTimeout}
	db.sessions = append(db.sessions, s)
	return s
}

// endSession ends a session, after the statement that it executes.
func (db *Database) endSession(s *session) {
	s.killed = true
	if s.busy || s.ended {
		return
	}
	if s.tx != nil {
		s.tx.end(false)
	}
	s.ended = true
	db.pooler.wake(db)
	db.sessions = slices.DeleteFunc(db.sessions, func(o *session) bool { return o == s })
}

// call executes a statement. It returns when that has ended.
func (s *session) call(sql string, args []any) *result {
	db := s.db
	db.take()
	defer db.pass()
	if s.ended || s.killed {
		return &result{err: s.cause, gone: true}
	}
	s.busy = true
	res, err := s.execute(sql, args)
	if errors.Is(err, errUnknown) {
		db.knobs.Unknown(fmt.Errorf("%s: %w", sql, err))
	}
	s.busy = false
	if res == nil || err != nil {
		res = &result{err: err}
	}
	if s.killed {
		if errors.Is(err, errKilled) {
			res.err = s.cause
		}
		res.gone = true
		db.endSession(s)
	}
	return res
}

// errKilled ends the waiting of a session that is killed.
var errKilled = errors.New("simdb: session was killed")

func (s *session) execute(sql string, args []any) (res *result, err error) {
	defer known(&err)
	st, err := s.db.parse(sql)
	switch {
	case err != nil:
		return nil, err
	case s.tx != nil && s.tx.failed && st.kind != "COMMIT" && !strings.HasPrefix(st.kind, "ROLLBACK"):
		return nil, pgErr("25P02", "current transaction is aborted, commands ignored until end of transaction block")
	}
	switch st.kind {
	case "ASK":
		return st.ask(s, args)
	case "SELECT", "INSERT", "UPDATE", "DELETE":
		if st.wait != nil {
			defer func(was time.Duration) { s.wait = was }(s.wait)
			s.wait = time.Duration(*st.wait) * time.Second
		}
		return s.statement(st, args)
	case "CREATE TABLE":
		s.db.create(st)
	case "CREATE INDEX":
		if st.keys != nil {
			s.db.addIndex(s.db.tables[st.table], st.keys[0])
		}
	case setWait, setLimit:
		s.limit(st)
	default:
		return &result{}, s.control(st)
	}
	return &result{}, nil
}

// statement executes one that reads or writes, in a transaction of its own if there is
// none.
func (s *session) statement(st *statement, args []any) (*result, error) {
	alone := s.tx == nil
	if alone {
		s.begin()
	}
	t := s.tx
	t.joined = true
	if s.db.postgres() {
		t.look()
	}
	undo := len(t.undo)
	res, err := s.run(st, args)
	if s.ended { // the server has crashed meanwhile
		return nil, errKilled
	}
	if err != nil {
		s.refused(err, undo)
	}
	if !alone || s.tx != t {
		return res, err
	}
	return res, cmp.Or(err, s.finish(err == nil))
}

// refused undoes a statement, or with it the transaction.
func (s *session) refused(err error, undo int) {
	switch {
	case s.db.postgres():
		s.tx.fail()
	case undoesAll(err):
		s.tx.end(false)
	default:
		s.tx.back(undo)
	}
}

func (s *session) begin() {
	if s.tx != nil {
		panic(unknown("BEGIN inside a transaction"))
	}
	s.tx = &tx{session: s, level: cmp.Or(s.next, s.db.level)}
	s.next = ""
}

// finish ends the transaction, and returns when a commit is durable.
func (s *session) finish(commit bool) error {
	db, t := s.db, s.tx
	t.end(commit && !t.failed)
	at := t.committed
	if at == 0 {
		return nil
	}
	if s.flush != nil && db.knobs.VisibleBeforeDurable {
		s.flushes, s.commits = t.number, true
		db.pass()
		s.flush()
		db.take()
		s.flushes, s.commits = 0, false
		if s.ended { // by a crash
			return errKilled
		}
	}
	db.durable = max(db.durable, at)
	return nil
}

func (s *session) control(st *statement) error {
	switch st.kind {
	case "BEGIN":
		s.begin()
		switch st.name {
		case snapshot:
			s.tx.look()
			s.tx.joined = true
		case repeatableRead, readCommitted:
			s.tx.level = st.name
		}
	case "COMMIT", "ROLLBACK":
		s.next = ""
		if s.tx != nil {
			return s.finish(st.kind == "COMMIT")
		}
	case "SET":
		s.next = st.name
	case "SAVEPOINT":
		switch {
		case s.tx != nil:
			s.tx.save(st.name)
		case s.db.postgres():
			return pgErr("25P01", "SAVEPOINT can only be used in transaction blocks")
		}
	case "ROLLBACK TO SAVEPOINT":
		return s.back(st.name)
	case release:
		return s.release(st.name)
	case "KILL", "KILL SOFT":
		id, _ := strconv.ParseInt(st.name, 10, 64)
		if !s.db.killSession(id) {
			return myErr(erNoThread, id)
		}
	}
	return nil
}

// savepoint returns the place of a savepoint, the last one with that name.
func (s *session) savepoint(name string) (int, error) {
	t, n := s.tx, -1
	for i := 0; t != nil && i < len(t.savepoints); i++ {
		if t.savepoints[i].name == name {
			n = i
		}
	}
	switch {
	case n >= 0:
		return n, nil
	case s.db.postgres():
		t.fail()
		return 0, pgErr("3B001", fmt.Sprintf("savepoint %q does not exist", name))
	default:
		return 0, myErr(erNoSavepoint, name)
	}
}

// release forgets a savepoint, and those after it.
func (s *session) release(name string) error {
	n, err := s.savepoint(name)
	if err == nil {
		s.tx.savepoints = s.tx.savepoints[:n]
	}
	return err
}

// back goes back to a savepoint.
func (s *session) back(name string) error {
	n, err := s.savepoint(name)
	if err != nil {
		return err
	}
	t := s.tx
	t.back(t.savepoints[n].undo)
	t.savepoints = t.savepoints[:n+1]
	t.failed = false
	t.dismissAll()
	if !s.db.postgres() && !t.savepoints[n].joined { // MariaDB rolls InnoDB's transaction back
		t.releaseLocks()
		t.joined, t.view = false, nil
	}
	return nil
}

// kill ends a session. What waits ends with it; a COMMIT that is being flushed does not.
func (db *Database) kill(s *session, cause error) {
	s.cause = cause
	if t := s.tx; t != nil && s.busy {
		db.wake(t.waits, errKilled)
	}
	db.endSession(s)
}

func (db *Database) sessionOf(id int64) *session {
	if n := slices.IndexFunc(db.sessions, func(s *session) bool { return s.id == id }); n >= 0 {
		return db.sessions[n]
	}
	return nil
}

// KillSession ends a session by its number, as KILL does.
func (db *Database) KillSession(id int64) { db.with(func() { db.killSession(id) }) }

// killSession reports whether there was such a session.
func (db *Database) killSession(id int64) bool {
	s := db.sessionOf(id)
	if s != nil {
		db.kill(s, db.killedError())
	}
	return s != nil
}

// Crash ends the server: all sessions end, and commits that are not durable are lost.
// Nobody can connect before Restart.
func (db *Database) Crash() { db.with(func() { db.crash(db.durable) }) }

func (db *Database) crash(upTo int64) {
	db.up = false
	for _, s := range slices.Clone(db.sessions) {
		if t := s.tx; t != nil && s.busy {
			db.wake(t.waits, errKilled)
		}
		s.killed, s.ended, s.tx = true, true, nil
	}
	db.sessions, db.late = nil, nil
	db.pooler.wake(db)
	for _, t := range db.tables {
		t.restore(upTo)
	}
	for number, t := range db.statuses {
		if t.committed == 0 || t.committed > upTo {
			delete(db.statuses, number)
		}
	}
	db.commits, db.durable, db.applied = upTo, upTo, upTo
}

// restore leaves of a table what was committed up to a place.
func (t *table) restore(upTo int64) {
	old := t.indexes[0].records
	for _, i := range t.indexes {
		i.records, i.supremum = nil, &record{index: i}
	}
	for _, rec := range old {
		values := rec.row.at(upTo, nil)
		if values == nil {
			continue
		}
		r := &row{table: t, versions: []version{{values: values}}}
		for _, i := range t.indexes {
			i.add(r.record(i, values[i.column]))
		}
	}
}

// Restart lets clients connect again. Sessions are numbered anew.
func (db *Database) Restart() { db.with(db.restart) }

func (db *Database) restart() { db.up, db.started, db.lastID = true, time.Now(), 2 }

// Failover replaces the server by one that lacks the last commits, so many as lost says. It
// gives out the numbers of their rows again.
func (db *Database) Failover(lost int64) {
	db.with(func() {
		db.crash(max(0, db.commits-lost))
		db.restart()
		db.server++
		for _, t := range db.tables {
			t.renumber()
		}
	})
}

// renumber has the next number of a table follow its highest.
func (t *table) renumber() {
	t.auto = 0
	for _, rec := range t.indexes[0].records {
		for i, c := range t.columns {
			if n, ok := rec.row.latest().values[i].(int64); ok && c.auto {
				t.auto = max(t.auto, n)
			}
		}
	}
}

// Lag has the second node apply no further commits before Apply.
func (db *Database) Lag() { db.with(func() { db.applied, db.lagging = db.commits, true }) }

// Apply has the second node apply n commits more. If n is negative, it applies all, and does
// not lag any more.
func (db *Database) Apply(n int64) {
	db.with(func() { db.applied, db.lagging = min(db.applied+n, db.commits), db.lagging && n >= 0 })
}
