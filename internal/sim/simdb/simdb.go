package simdb

import (
	"fmt"
	"time"
)

// A Personality is the server that a database resembles.
type Personality int

const (
	// MariaDB is 10.11, at REPEATABLE READ.
	MariaDB Personality = iota
	// MariaDBSnapshot has innodb_snapshot_isolation, as MariaDB 11 has.
	MariaDBSnapshot
	// PostgreSQL is 15, at READ COMMITTED.
	PostgreSQL
)

// Knobs make a database behave as those do that promise less.
type Knobs struct {
	// VisibleBeforeDurable makes a COMMIT pass the gate a second time, as Call.Flush: its
	// writes are visible before, and Crash loses them until then.
	VisibleBeforeDurable bool
	// Pooler is the number of server sessions that all connections share, as those of a
	// pooler in transaction mode do. Defaults to 0: each connection has its own.
	Pooler int
	// Unknown is called with a statement that the database does not know, and must end the
	// run. Defaults to a panic.
	Unknown func(error)
}

// A Database is a simulated database server, or two that share their rows. Its methods
// are safe for concurrent use. Inside a testing/synctest bubble it blocks durably.
type Database struct {
	baton
	personality Personality
	knobs       Knobs
	engine      engine
	level       string // of a transaction by default

	tables     map[string]*table
	sessions   []*session
	lastID     int64 // of a session
	lastTx     int64 // PostgreSQL's number of a transaction
	statuses   map[int64]*tx
	commits    int64 // how many there were
	durable    int64 // how many of them Crash leaves
	applied    int64 // how many the second node has
	lagging    bool  // it applies only what Apply says
	server     int   // which one it is: another after a Failover
	up         bool
	started    time.Time
	conns      int     // that were ever made
	clients    []*conn // that are alive
	pooler     pooler
	late       []lateCall
	doubted    []*tx         // to be searched for deadlocks of InnoDB
	structures int64         // of InnoDB that keep locks, so many were made
	ahead      time.Duration // of its clock, see Age
	raced      bool          // a rollback has woken several at once, which tests leave out
}

// Limits of the servers, as they are by default.
const (
	lockTimeout     = 50 * time.Second // innodb_lock_wait_timeout
	deadlockTimeout = time.Second      // PostgreSQL's deadlock_timeout
)

// New returns an empty database.
func New(p Personality, k Knobs) *Database {
	if k.Unknown == nil {
		k.Unknown = func(err error) { panic(err) }
	}
	db := &Database{
		personality: p, knobs: k, up: true, started: time.Now(), lastTx: 700,
		tables: make(map[string]*table), statuses: make(map[int64]*tx),
	}
	db.engine, db.level = innodb{db}, repeatableRead
	if p == PostgreSQL {
		db.engine, db.level = heap{db}, readCommitted
	}
	return db
}

func (db *Database) postgres() bool { return db.personality == PostgreSQL }

// Exec executes statements beside all processes, such as CREATE TABLE. It panics if one
// fails, and must not have to wait.
func (db *Database) Exec(statements ...string) {
	s := db.newSession()
	defer db.with(func() { db.endSession(s) })
	for _, sql := range statements {
		if r := s.call(sql, nil); r.err != nil {
			panic(fmt.Errorf("%s: %w", sql, r.err))
		}
	}
}

// Age makes all rows older by d: the server's clock goes ahead. The clock of the outbox stays.
func (db *Database) Age(d time.Duration) { db.with(func() { db.ahead += d }) }

// Rows returns the newest committed rows of a table, in the order of its primary key.
func (db *Database) Rows(name string) (rows []map[string]any) {
	db.with(func() {
		t := db.tables[name]
		if t == nil {
			return
		}
		for _, rec := range t.indexes[0].records {
			values := rec.row.at(db.commits, nil)
			if values == nil {
				continue
			}
			named := make(map[string]any)
			for i, c := range t.columns {
				named[c.name] = values[i]
			}
			rows = append(rows, named)
		}
	})
	return rows
}

// visible is up to which commit a session sees.
func (db *Database) visible(s *session) int64 {
	if s.second && db.lagging {
		return db.applied
	}
	return db.commits
}

// numbered gives a transaction its number, as PostgreSQL does at its first write.
func (db *Database) numbered(t *tx) {
	if t.number == 0 {
		db.lastTx++
		t.number = db.lastTx
		db.statuses[t.number] = t
	}
}
