package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/sqlerr"
)

// PollInterval is the pause between two reads of something that the server is about to do.
const PollInterval = 20 * time.Millisecond

// First is the savepoint of a transaction that may be undone, or leave its session, unnoticed: see
// [Session.Marked] and [Session.MarksWrites].
const First = "belay_first"

// A Session describes a connection, as its server reports it.
type Session struct {
	ID       uint64       // for KILL
	Server   string       // the server that gave the ID; unchanged by a restart
	Read     time.Time    // on MySQL, when the session had this ID
	Begun    time.Time    // when its transaction began
	Sent     time.Time    // when the COMMIT of its transaction was sent
	Run      string       // on PostgreSQL, the server's run: another after a restart or a crash
	Started  sql.NullTime // on PostgreSQL, when the session began, by the server's clock
	Numbers  bool         // a PostgreSQL 13 or newer, whose role may identify it: transactions have numbers
	Family   Family       // that the server shows: its statements are that one's
	Told     Family       // that the program's configuration names, "" if none: see [Session.Proven]
	Galera   bool
	Group    bool   // the server is or was in a group of MySQL's, or is to be in one
	View     string // the view of its group: another after a member joined or left
	SemiSync bool   // MySQL's or MariaDB's commits wait for a replica
	// Yields is set if a commit of another member may undo the transaction. The next
	// statement that uses a table then ends in a deadlock. But if a SAVEPOINT comes first,
	// MySQL forgets the deadlock, and later statements would be committed alone. So a
	// transaction begins with a savepoint, which MySQL does not write to its binary log. The
	// release of one that InnoDB has undone fails otherwise than that of one in another session.
	Yields           bool
	Autocommit       bool // a statement outside of a transaction is committed alone
	Snapshot         bool // the transaction has one, which no other's commit changes
	ReadsLock        bool // on MySQL and MariaDB, a plain read locks the rows that it finds
	Strict           bool // a value that does not fit is refused
	EmptyIsNull      bool // an empty text is NULL
	Grammar          sqltext.Grammar
	RefusesChanged   bool   // a row that changed since the snapshot is not written, nor locked
	TimeoutRollsBack bool   // a lock wait that takes too long undoes the transaction
	Behind           bool   // a transaction may begin before the commits of other nodes have arrived
	LockWait         string // how long a statement waits for a row, as a setting of the session
	// Sampled is set if the transaction must still be there when it is committed. MySQL and MariaDB
	// report nothing if a pooler has sent its statements to several sessions: see [Sessions.Scatter].
	// MySQL shows it by the savepoint [First]; MariaDB, which would write that to its binary log though
	// nothing was changed, by [InTransaction].
	Sampled bool
}

// A Transaction is what a server reports of one.
type Transaction struct {
	Number string // "" if it has written nothing, or the server does not report it
	Own    bool   // the session has it: behind a pooler it may be another's
	Rows   int64  // rows that the statement has written
}

// HoldsBack reports whether the session must be without autocommit while it has a transaction.
// Galera undoes one in favour of another node's commit, silently if it was about to prepare a
// SELECT. Later statements would be committed alone. Without autocommit they are in another
// transaction, which lacks [First].
func (s Session) HoldsBack() bool { return s.Galera && s.Autocommit }

// Marked reports whether a transaction begins with the savepoint [First].
func (s Session) Marked() bool { return !s.Galera && (s.Yields || s.Sampled && s.Family != MariaDB) }

// MarksWrites reports whether the savepoint [First] comes before the first statement that may write or
// lock a row. A node of Galera undoes no transaction without locks, and MariaDB would write the
// savepoint of one that only reads to its binary log.
func (s Session) MarksWrites() bool { return s.Galera }

// LosesItself reports whether the session has just failed to find [First] because its node has undone the
// transaction. It has the ID and the error only if the connection has not left it, as behind a pooler,
// and what came after the transaction was held back only without autocommit.
func (s Session) LosesItself(ctx context.Context, c *sql.Conn) bool {
	var proven bool
	query := fmt.Sprintf("SELECT @@error_count > 0 AND NOT @@autocommit AND @@pseudo_thread_id = %d", s.ID)
	return c.QueryRowContext(ctx, query).Scan(&proven) == nil && proven
}

// SessionID returns the ID of a session of MySQL or MariaDB.
func SessionID(ctx context.Context, c *sql.Conn) (id uint64, err error) {
	err = c.QueryRowContext(ctx, "SELECT @@pseudo_thread_id").Scan(&id)
	return id, err
}

// InTransaction reports whether a session of MariaDB has a transaction.
func InTransaction(ctx context.Context, c *sql.Conn) (has bool, err error) {
	err = c.QueryRowContext(ctx, "SELECT @@in_transaction").Scan(&has)
	return has, err
}

// AppendBegin appends the statements that begin a transaction in the session.
func (s Session) AppendBegin(all []string, d Dialect) []string {
	if s.HoldsBack() {
		all = append(all, "SET autocommit = 0")
	}
	all = append(all, d.Begin)
	if s.Marked() {
		all = append(all, "SAVEPOINT "+First)
	}
	return all
}

// RolledBack reports whether err is a lock wait that took too long, where that undoes the
// transaction.
func (s Session) RolledBack(err error) bool {
	return s.TimeoutRollsBack && sqlerr.IsMySQL(err, erLockWaitTimeout)
}

// Sessions remembers the sessions of a pool by the driver's connections, so that each is
// read once in its life, on MySQL once a minute, and not in each transaction.
type Sessions struct {
	mu        sync.Mutex
	known     map[any]Session
	moved     bool
	scattered bool
}

// rereadInterval is how long a session's ID is trusted on MySQL, where reading it costs
// a statement: a pooler may give each transaction to another session.
const rereadInterval = time.Minute

// Moved reports whether a connection has been seen in two sessions.
func (s *Sessions) Moved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved
}

// Scatter notes that a transaction has lost its session: from now on each one on MySQL and MariaDB is
// [Session.Sampled]. Before that only the first one is after its session was read, which costs one or
// two short statements a minute.
func (s *Sessions) Scatter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scattered = true
}

// sampled returns a session with Sampled as it is for the next transaction. One of a family that
// Belay does not know may have no savepoints.
func (s *Sessions) sampled(found Session, d Dialect, first bool) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found.Sampled = (first || s.scattered) && d.Name == "mysql" && !found.Galera && !found.Family.Resembles()
	return found
}

// Of returns the session of a connection of a pool.
func (s *Sessions) Of(ctx context.Context, pool *sql.DB, c *sql.Conn, d Dialect) (Session, error) {
	var key any
	if err := c.Raw(func(conn any) error { key = identity(conn); return nil }); err != nil {
		return Session{}, err
	}
	var then uint64
	if key != nil {
		s.mu.Lock()
		found, ok := s.known[key]
		s.mu.Unlock()
		if ok && (d.Name != "mysql" || time.Since(found.Read) < rereadInterval) {
			return s.sampled(found, d, false), nil
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
	if key != nil {
		s.remember(key, found, pool.Stats().OpenConnections)
	}
	return s.sampled(found, d, true), nil
}

// identity returns the pointer that stands for a driver's connection, nil if there is none. It is
// that of a method Conn, if the connection has one, as pgx's: a *sql.DB on a pool of pgx wraps a
// connection anew each time that it takes it.
func identity(conn any) any {
	v := reflect.ValueOf(conn)
	if m := v.MethodByName("Conn"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 && m.Type().Out(0).Kind() == reflect.Pointer {
		v = m.Call(nil)[0]
	}
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil
	}
	return v.Interface()
}

// remember forgets all sessions when there are more than open connections, because it
// does not know which of them have been closed.
func (s *Sessions) remember(key any, found Session, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) > 2*open+8 {
		s.known = make(map[any]Session)
	}
	s.known[key] = found
}

// ForgetOf forgets the session of a connection.
func (s *Sessions) ForgetOf(c *sql.Conn) {
	_ = c.Raw(func(conn any) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.known, identity(conn))
		return nil
	})
}

// Forget forgets all sessions, so that each is read again.
func (s *Sessions) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = nil
}
