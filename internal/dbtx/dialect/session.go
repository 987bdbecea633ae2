package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/sqlerr"
)

// PollInterval is the pause between two reads of something that the server is about to do.
const PollInterval = 20 * time.Millisecond

// A Session is what the server says of one of its connections.
type Session struct {
	ID       uint64       // for KILL
	Server   string       // where the number means something; the same after a restart
	Read     time.Time    // on MySQL, when it had its number
	Begun    time.Time    // when its transaction was
	Sent     time.Time    // when the COMMIT of that was
	Run      string       // on PostgreSQL, of the server: another after a restart or a crash
	Started  sql.NullTime // on PostgreSQL, by the server's clock
	Numbers  bool         // PostgreSQL 13 and newer know the number of a transaction
	MariaDB  bool
	Galera   bool
	Group    bool   // the server is or was in a group of MySQL's, or is to be in one
	View     string // of its group: another since a member came or went
	SemiSync bool   // MySQL's or MariaDB's commits wait for a replica
	// Yields: a commit of another member may undo the transaction. The next statement that
	// uses a table then ends in a deadlock, unless a SAVEPOINT comes first: MySQL forgets it
	// there, and what follows would be committed alone. So a transaction begins with one.
	Yields           bool
	Snapshot         bool   // the transaction has one, which no other's commit changes
	Strict           bool   // a value that does not fit is refused
	RefusesChanged   bool   // a row that changed since the snapshot is not written, nor locked
	TimeoutRollsBack bool   // a lock wait that takes too long undoes the transaction
	Behind           bool   // a transaction may begin before what others of a cluster have committed is here
	LockWait         string // how long a statement waits for a row, as a setting of the session
}

// RolledBack reports whether err is a lock wait that took too long, where that undoes the
// transaction.
func (s Session) RolledBack(err error) bool {
	return s.TimeoutRollsBack && sqlerr.IsMySQL(err, erLockWaitTimeout)
}

// Sessions remembers the sessions of a pool by the driver's connections, so that each is
// read once in its life, on MySQL once a minute, and not in each transaction.
type Sessions struct {
	mu    sync.Mutex
	known map[any]Session
	moved bool
}

// rereadInterval is how long the number of a session is believed on MySQL, where nothing
// tells it for free: a pooler gives each transaction to another one.
const rereadInterval = time.Minute

// Moved reports whether a connection has been seen in two sessions.
func (s *Sessions) Moved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved
}

// Of returns the session of a connection of a pool.
func (s *Sessions) Of(ctx context.Context, pool *sql.DB, c *sql.Conn, d Dialect) (Session, error) {
	var key any
	if err := c.Raw(func(conn any) error { key = conn; return nil }); err != nil {
		return Session{}, err
	}
	var then uint64
	isPointer := reflect.TypeOf(key).Kind() == reflect.Pointer // anything else need not be
	if isPointer {
		s.mu.Lock()
		found, ok := s.known[key]
		s.mu.Unlock()
		if ok && (d.Name != "mysql" || time.Since(found.Read) < rereadInterval) {
			return found, nil
		}
		then = found.ID
	}
	found, err := d.ReadSession(ctx, c)
	if err != nil {
		return Session{}, fmt.Errorf("read the session: %w", err)
	}
	if then != 0 && then != found.ID {
		s.mu.Lock()
		s.moved = true
		s.mu.Unlock()
	}
	if isPointer {
		s.remember(key, found, pool.Stats().OpenConnections)
	}
	return found, nil
}

// remember forgets all when there are more than the open ones, as it does not know which
// of them have been closed.
func (s *Sessions) remember(key any, found Session, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) > 2*open+8 {
		s.known = make(map[any]Session)
	}
	s.known[key] = found
}

// Forget forgets all sessions, so that each is read again.
func (s *Sessions) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = nil
}
