package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testwait"
)

func TestMain(m *testing.M) {
	// A query that has panicked never ends for database/sql.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/belaygo/belay/internal/sqlconn.Discard"))
}

// A server has connections that take every statement, and panic at some.
type server struct {
	panics string // the beginning of a statement
	silent string // the beginning of a statement that gets no answer
	unread string // the beginning of a statement that it cannot parse

	mu     sync.Mutex
	opened int
	took   []string
}

func (s *server) Connect(context.Context) (driver.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return &conn{server: s}, nil
}

func (s *server) Driver() driver.Driver { return nil }

func (s *server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

type conn struct {
	*server

	closed bool
}

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (c *conn) Begin() (driver.Tx, error)           { return nil, driver.ErrSkip }

func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // as a driver does that closes a channel
		panic("closed twice")
	}
	c.closed = true
	c.opened--
	return nil
}

func (c *conn) ExecContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.take(ctx, query)
}

func (c *conn) QueryContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	return nil, c.take(ctx, query)
}

func (c *conn) take(ctx context.Context, query string) error {
	if begins(query, c.silent) {
		<-ctx.Done()
		return ctx.Err()
	}
	c.mu.Lock()
	c.took = append(c.took, query)
	c.mu.Unlock()
	if begins(query, c.unread) {
		return &mysql.MySQLError{Number: 1064}
	}
	if begins(query, c.panics) {
		panic("a driver")
	}
	return nil
}

func begins(query, with string) bool { return with != "" && strings.HasPrefix(query, with) }

// TestPanicLeavesNoTransaction: a driver that panics leaves no transaction to the next user of its
// connection, and holds up nobody.
func TestPanicLeavesNoTransaction(t *testing.T) {
	type run = func(sqldb.DB, context.Context, func(sqldb.Conn) error) error
	for name, run := range map[string]run{
		"START": sqldb.DB.InTx, "INSERT": sqldb.DB.InTx, "SELECT": sqldb.DB.InTx, "COMMIT": sqldb.DB.InTx,
		"ROLLBACK": sqldb.DB.Read,
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{panics: name}
			pool := sql.OpenDB(s)
			defer pool.Close()
			panicked := make(chan any, 1)
			go func() {
				defer func() { panicked <- recover() }()
				_ = run(sqldb.New(pool, dialect(t, "mysql")), t.Context(), func(c sqldb.Conn) error {
					if name == "SELECT" {
						var none int
						return c.QueryRowContext(t.Context(), "SELECT 1").Scan(&none)
					}
					_, err := c.ExecContext(t.Context(), "INSERT")
					return err
				})
			}()
			testwait.Until(t, "the panic arrives", func() bool { return len(panicked) > 0 })
			if p := <-panicked; p != "a driver" {
				t.Errorf("recovered %v, want the driver's panic", p)
			}
			testwait.Until(t, "the connection is closed", func() bool { return s.open() == 0 })
		})
	}
}

// TestPlainCommit: a server such as OceanBase takes no COMMIT that refuses a chain.
func TestPlainCommit(t *testing.T) {
	s := &server{unread: "COMMIT AND"}
	pool := sql.OpenDB(s)
	defer pool.Close()
	if _, err := sqldb.New(pool, dialect(t, "mysql")).Exec(t.Context(), "INSERT"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"COMMIT AND NO CHAIN NO RELEASE", "COMMIT", "INSERT", "COMMIT AND NO CHAIN NO RELEASE", "COMMIT"}; !slices.Equal(s.took, want) {
		t.Errorf("sent %q, want %q", s.took, want)
	}
}
