package dbtx_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// A swapper is a driver that wraps another one, as AWS's does: its connections stay open, and get
// another session when they fail over.
type swapper struct {
	driver.Connector
	mu    sync.Mutex
	at    string // the next statement with this text
	err   error  // is not sent, and fails with err; nil = it is sent to the new session
	undo  bool   // the transaction is rolled back instead, and the session kept
	opens int    // connections of the pool
}

func (s *swapper) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	return &swapped{c, s}, nil
}

// swapAt makes the connection swap its session at the next statement with this text.
func (s *swapper) swapAt(text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.err, s.undo = text, err, false
}

// undoAt makes the server undo the transaction unnoticed before the next statement with this text.
func (s *swapper) undoAt(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.err, s.undo = text, nil, true
}

func (s *swapper) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opens
}

type swapped struct {
	driver.Conn
	s *swapper
}

func (c *swapped) swap(ctx context.Context, query string) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.at == "" || !strings.Contains(query, c.s.at) {
		return nil
	}
	c.s.at = ""
	if c.s.undo {
		_, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, "ROLLBACK", nil)
		return err
	}
	other, err := c.s.Connector.Connect(ctx)
	if err != nil {
		return err
	}
	_ = c.Close()
	c.Conn = other
	return c.s.err
}

func (c *swapped) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.swap(ctx, query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *swapped) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.swap(ctx, query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *swapped) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.swap(ctx, query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *swapped) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// eachSwapper runs f on every server, with a pool whose connections swap their sessions.
func eachSwapper(t *testing.T, f func(t *testing.T, db *gorm.DB, s *swapper)) {
	for name, open := range map[string]func(*testing.T) (*swapper, func(*sql.DB) gorm.Dialector){
		"mysql": func(t *testing.T) (*swapper, func(*sql.DB) gorm.Dialector) {
			config, err := mysql.ParseDSN(teststack.MySQL(t))
			wantNil(t, err)
			config.InterpolateParams = true // so that no statement is prepared
			connector, err := mysql.NewConnector(config)
			wantNil(t, err)
			return &swapper{Connector: connector}, func(pool *sql.DB) gorm.Dialector {
				return gormmysql.New(gormmysql.Config{Conn: pool})
			}
		},
		"postgres": func(t *testing.T) (*swapper, func(*sql.DB) gorm.Dialector) {
			config, err := pgx.ParseConfig(teststack.Postgres(t))
			wantNil(t, err)
			return &swapper{Connector: stdlib.GetConnector(*config)}, func(pool *sql.DB) gorm.Dialector {
				return gormpostgres.New(gormpostgres.Config{Conn: pool})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dialector := open(t)
			pool := sql.OpenDB(s)
			t.Cleanup(func() { _ = pool.Close() })
			db, err := gorm.Open(dialector(pool), &gorm.Config{Logger: logger.Discard})
			wantNil(t, err)
			prepare(t, db)
			pool.SetMaxOpenConns(1)
			f(t, db, s)
		})
	}
}

// lostSessions are errors at a statement whose connection has another session behind it.
func lostSessions(db *gorm.DB) map[string]error {
	all := map[string]error{"of a wrapper": errors.New("failover: the connection was established to another instance")}
	if db.Name() == "mysql" {
		all["of a proxy, as a client's"] = &mysql.MySQLError{Number: 2013, Message: "Lost connection to MySQL server during query"}
		all["of ProxySQL"] = &mysql.MySQLError{Number: 9001, Message: "Max connect timeout reached while reaching hostgroup 0"}
	} else {
		all["of a pooler"] = &pgconn.PgError{Code: "08006", Message: "server closed the connection"}
	}
	return all
}

// inserts are ways to insert an order in a transaction.
func inserts(t *testing.T, pool *sql.DB) (dbtx.Options, map[string]func(tx *dbtx.Tx, no string) error) {
	handle := dbtx.NewHandle(func() (*sql.DB, error) { return pool, nil })
	t.Cleanup(func() { _ = handle.Close() })
	insert := func(no string) string { return "INSERT INTO orders (no) VALUES ('" + no + "')" }
	return dbtx.Options{SQL: handle}, map[string]func(*dbtx.Tx, string) error{
		"gorm's Create": func(tx *dbtx.Tx, no string) error { return tx.DB().Create(&Order{No: no}).Error },
		"gorm's Exec":   func(tx *dbtx.Tx, no string) error { return tx.DB().Exec(insert(no)).Error },
		"gorm's Rows": func(tx *dbtx.Tx, no string) error {
			rows, err := tx.DB().Raw(insert(no)).Rows()
			if err != nil {
				return err
			}
			defer rows.Close()
			return rows.Err()
		},
		"gorm's Row": func(tx *dbtx.Tx, no string) error { return tx.DB().Raw(insert(no)).Row().Err() },
		"database/sql's Exec": func(tx *dbtx.Tx, no string) error {
			raw, err := tx.SQL()
			if err == nil {
				_, err = raw.ExecContext(bg, insert(no))
			}
			return err
		},
		"database/sql's statement": func(tx *dbtx.Tx, no string) error {
			raw, err := tx.SQL()
			if err != nil {
				return err
			}
			st, err := raw.PrepareContext(bg, insert(no))
			if err != nil {
				return err
			}
			defer st.Close()
			_, err = st.ExecContext(bg)
			return err
		},
	}
}

// TestSwappedSession: a connection that fails over under a transaction has another session, in which
// later statements would be committed alone. They are refused, whatever the program makes of the
// error, and no later transaction gets the connection.
func TestSwappedSession(t *testing.T) {
	eachSwapper(t, func(t *testing.T, db *gorm.DB, s *swapper) {
		pool, err := db.DB()
		wantNil(t, err)
		options, ways := inserts(t, pool)
		for of, lost := range lostSessions(db) {
			for way, insert := range ways {
				tx := begin(t, db, options)
				wantNil(t, tx.Protect(&Order{No: "a"}))
				wantNil(t, insert(tx, "a"))
				s.swapAt("orders", lost)
				if err := insert(tx, "b"); !errors.Is(err, lost) {
					t.Errorf("%s, %s: %v, want %v", way, of, err, lost)
				}
				if err := insert(tx, "c"); !errors.Is(err, dbtx.ErrPoisoned) {
					t.Errorf("%s, %s: behind it: %v, want it refused", way, of, err)
				}
				opened := s.opened()
				if err := tx.Commit(); !errors.Is(err, dbtx.ErrPoisoned) {
					t.Errorf("%s, %s: committed with %v", way, of, err)
				}
				if n := count(t, db, &Order{}); n != 0 {
					t.Errorf("%s, %s: %d rows, want none", way, of, n)
					wantNil(t, db.Exec("DELETE FROM orders").Error)
				}
				if s.opened() == opened {
					t.Errorf("%s, %s: the connection is used again", way, of)
				}
			}
		}
	})
}

// TestSessionSwappedAtCommit: the wrapper's error at a COMMIT proves nothing by itself.
func TestSessionSwappedAtCommit(t *testing.T) {
	eachSwapper(t, func(t *testing.T, db *gorm.DB, s *swapper) {
		for of, lost := range lostSessions(db) {
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Order{No: "a"}))
			wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
			s.swapAt("COMMIT", lost)
			wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
			if o, err := tx.Resolve(bg); o != dbtx.NotCommitted || err != nil {
				t.Errorf("%s: resolved as %v, %v, want not committed", of, o, err)
			}
		}
	})
}

// check returns the statement by which a transaction on MySQL or MariaDB looks whether it is still there.
func check(t *testing.T, db *gorm.DB) string {
	t.Helper()
	var version string
	wantNil(t, db.Raw("SELECT version()").Scan(&version).Error)
	if strings.Contains(version, "MariaDB") {
		return "SELECT @@in_transaction"
	}
	return "RELEASE SAVEPOINT belay_first"
}

// TestSessionSwappedAtTheCheck: a connection that has another session when its transaction is looked for, or
// at the savepoint of a routine, is given to no later transaction.
func TestSessionSwappedAtTheCheck(t *testing.T) {
	eachSwapper(t, func(t *testing.T, db *gorm.DB, s *swapper) {
		if db.Name() != "mysql" {
			return // PostgreSQL has no such savepoints
		}
		for of, lost := range lostSessions(db) {
			for _, at := range []string{check(t, db), "SAVEPOINT belay_routine", "RELEASE SAVEPOINT belay_routine"} {
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
				opened := s.opened()
				s.swapAt(at, lost)
				_ = errors.Join(tx.DB().Exec("PREPARE nothing FROM 'DO 1'").Error, tx.DB().Exec("EXECUTE nothing").Error)
				if err := tx.Commit(); !errors.Is(err, dbtx.ErrPoisoned) || !errors.Is(err, lost) {
					t.Errorf("%s, at %s: committed with %v", of, at, err)
				}
				if n := count(t, db, &Order{}); n != 0 {
					t.Errorf("%s, at %s: %d rows, want none", of, at, n)
				}
				if s.opened() == opened {
					t.Errorf("%s, at %s: the connection is used again", of, at)
				}
			}
		}
	})
}

// TestSessionSwappedInSilence: a pooler of statements, or a wrapper, may give a connection another
// session and report nothing. What comes after is committed alone. That the transaction is gone is found
// when it is about to be committed: on PostgreSQL in each, on MySQL and MariaDB in the first one after the
// session was read, and from then on in each. In the moment after that nobody finds it.
func TestSessionSwappedInSilence(t *testing.T) {
	eachSwapper(t, func(t *testing.T, db *gorm.DB, s *swapper) {
		moments := map[string]int64{"INSERT": 1} // what is committed alone
		if db.Name() == "mysql" {
			moments = map[string]int64{"INSERT": 1, "SAVEPOINT mine": 1, check(t, db): 0}
			if check(t, db) != "SELECT @@in_transaction" {
				moments["SAVEPOINT belay_first"] = 2
			}
		}
		for at, want := range moments {
			for n := range 2 { // the second transaction is on a connection that is known
				s.swapAt("", nil)
				if n > 0 {
					wantNil(t, begin(t, db, dbtx.Options{}).Commit())
				}
				if at == "SAVEPOINT belay_first" {
					s.swapAt(at, nil)
				}
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(&Order{No: "a"}))
				wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
				if at != "SAVEPOINT belay_first" {
					s.swapAt(at, nil)
				}
				wantNil(t, tx.DB().Exec("SAVEPOINT mine").Error)
				wantNil(t, tx.DB().Create(&Order{No: "b"}).Error)
				wantIs(t, tx.Commit(), dbtx.ErrTxControl)
				wantIs(t, tx.Unseen(), dbtx.ErrTxControl)
				if got := count(t, db, &Order{}); got != want {
					t.Errorf("at %s: %d rows are committed, want %d", at, got, want)
				}
				wantNil(t, db.Exec("DELETE FROM orders").Error)
			}
		}
	})
}

// TestScatteredStatements: a pooler that gives each statement to the next of its sessions is found,
// whichever transaction is the first.
func TestScatteredStatements(t *testing.T) {
	eachMultiplexer(t, true, func(t *testing.T, db, _ *gorm.DB, _ *testdb.Link) {
		for range 4 {
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
			wantIs(t, tx.Commit(), dbtx.ErrTxControl)
			wantNil(t, db.Exec("DELETE FROM orders").Error)
		}
	})
}

// TestRefusedArguments: what database/sql refuses before it sends it leaves the transaction as it was.
func TestRefusedArguments(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		if err := tx.DB().Exec("DELETE FROM orders WHERE no = ?", struct{ No string }{"a"}).Error; err == nil {
			t.Fatal("a struct was taken for a value")
		}
		wantNil(t, tx.DB().Create(&Order{No: "b"}).Error)
		wantNil(t, tx.Commit())
	})
}
