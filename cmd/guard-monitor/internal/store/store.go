// Package store keeps the events that guard-monitor received in one SQLite
// file.
//
// Add returns only after the event is on disk (WAL with synchronous=FULL), so
// that the caller may then acknowledge the message it came in. Events that are added at
// the same time share a transaction. Writes share one connection, since SQLite has one
// writer; reads have a small pool of their own that cannot write. The file must not lie on
// a network file system.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"modernc.org/sqlite" // the driver "sqlite", without cgo
	sqlite3 "modernc.org/sqlite/lib"
)

const readers = 4

// busy is how long a lock on the file is waited for.
const busy = 5 * time.Second

// Every connection waits for a lock and checks foreign keys.
var pragmas = []string{fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()), "foreign_keys(1)"}

// Store is safe for concurrent use.
type Store struct {
	write   *sql.DB
	read    *sql.DB
	current *current
	fresh   fresh

	insert    *sql.Stmt // insertEvent
	known     *sql.Stmt // selectKnown
	additions chan *addition
	closing   chan struct{} // closed by Close
	written   chan struct{} // closed when no event is written any more
	close     func() error
}

// Open opens the database in the file path, creates it if there is none, and
// brings its schema up to date. The file is readable by its owner only. A
// database of a newer schema is refused with ErrNewerSchema, another program's
// with an error that says so; both are left as they are.
func Open(ctx context.Context, path string) (*Store, error) { return openBusy(ctx, path, migrate) }

// Attach opens the database of a guard-monitor, which may be running. It creates no file, and
// leaves the schema as it is: an older one is refused with ErrOlderSchema, since the guard-monitor
// that wrote it could not start again.
func Attach(ctx context.Context, path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openBusy(ctx, path, checkCurrent)
}

// openBusy opens the database once no other process has it for itself. Its schema is that of this
// program when prepare has returned.
func openBusy(ctx context.Context, path string, prepare func(context.Context, *sql.DB) error) (*Store, error) {
	until := time.Now().Add(busy)
	for {
		s, err := open(ctx, path, prepare)
		switch {
		case err == nil:
			return s, nil
		case !locked(err) || time.Now().After(until):
			return nil, fmt.Errorf("open store %q: %w", path, err)
		}
		select { // SQLite itself does not wait for another process that turns on the log
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("open store %q: %w", path, errors.Join(err, ctx.Err()))
		}
	}
}

// locked reports whether another process had the file.
func locked(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func open(ctx context.Context, path string, prepare func(context.Context, *sql.DB) error) (*Store, error) {
	if path == "" {
		return nil, errors.New("no file name given")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := touch(path); err != nil {
		return nil, err
	}
	read, err := sql.Open("sqlite", dsn(path, "deferred", "query_only(1)"))
	if err != nil {
		return nil, err
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	version, err := schemaVersion(ctx, read)
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	write, err := openWriter(ctx, path, version == 0, prepare)
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	insert, err := write.PrepareContext(ctx, insertEvent)
	known, err2 := write.PrepareContext(ctx, selectKnown)
	if err := errors.Join(err, err2); err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	s := &Store{
		write: write, read: read, current: newCurrent(),
		insert: insert, known: known, additions: make(chan *addition), closing: make(chan struct{}), written: make(chan struct{}),
	}
	s.close = sync.OnceValue(s.end)
	go s.writeEvents()
	return s, nil
}

func openWriter(ctx context.Context, path string, create bool, prepare func(context.Context, *sql.DB) error) (*sql.DB, error) {
	var more []string
	if create { // the only time to choose it; before the file has a page
		more = append(more, "auto_vacuum(2)")
	}
	db, err := sql.Open("sqlite", dsn(path, "immediate", append(more, "journal_mode(WAL)", "synchronous(FULL)")...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := prepare(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// touch creates the file with the mode that SQLite then copies to its log, and
// has better words than SQLite for a folder that is not there.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	return f.Close()
}

func dsn(path, txlock string, more ...string) string {
	q := url.Values{"_txlock": {txlock}}
	for _, p := range slices.Concat(pragmas, more) {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

// Ping reports whether the store can be read.
func (s *Store) Ping(ctx context.Context) error {
	var version int
	if err := s.read.QueryRowContext(ctx, `SELECT max(version) FROM schema_version`).Scan(&version); err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	return nil
}

// Close waits for statements in progress and closes the database. It may be
// called again.
func (s *Store) Close() error { return s.close() }

func (s *Store) end() error {
	close(s.closing)
	<-s.written
	return errors.Join(s.insert.Close(), s.known.Close(), s.read.Close(), s.write.Close())
}
