package sqlfront

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"regexp"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// outside is the connection of a caller without an operation. It takes one of the pool for
// what it answers, and only then: a pool of one has none left while an operation runs.
type outside struct {
	pool *sql.DB
	in   *sql.Conn
}

// Close implements driver.Conn.
func (c *outside) Close() error {
	if c.in == nil {
		return nil
	}
	return c.in.Close()
}

// Begin implements driver.Conn.
func (c *outside) Begin() (driver.Tx, error) { return nil, errOutside }

// BeginTx implements driver.ConnBeginTx.
func (c *outside) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nil, errOutside
}

// Ping implements driver.Pinger.
func (c *outside) Ping(ctx context.Context) error { return c.pool.PingContext(ctx) }

// Prepare implements driver.Conn.
func (c *outside) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext. The statement is sent to no server: an
// operation prepares it again, on its own connection.
func (c *outside) PrepareContext(context.Context, string) (driver.Stmt, error) { return unsent{}, nil }

// ExecContext implements driver.ExecerContext.
func (c *outside) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, errOutside
}

// QueryContext implements driver.QueryerContext. It answers a query that reads no table.
func (c *outside) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) > 0 || !readsNoTable(query) {
		return nil, errOutside
	}
	if c.in == nil {
		in, err := c.pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		c.in = in
	}
	var rows driver.Rows
	err := c.in.Raw(func(dc any) (err error) {
		d, ok := dc.(driver.QueryerContext)
		if !ok {
			return driver.ErrSkip
		}
		rows, err = d.QueryContext(ctx, query, args)
		return err
	})
	return rows, err
}

// readsNoTable reports whether a query is one SELECT that reads no table, and calls no function
// but that of the server's version.
func readsNoTable(query string) bool {
	statements := sqltext.Split(query, sqltext.Standard)
	if len(statements) != 1 {
		return false
	}
	words := statements[0].Words()
	calls := strings.Count(query, "(")
	return words[0] == "SELECT" && calls == len(versions.FindAllString(query, -1)) && !slices.Contains(words, "FROM") && !slices.Contains(words, "INTO")
}

// versions finds the functions that libraries ask for the version.
var versions = regexp.MustCompile(`(?i)\b(sqlite_)?version\(\)`)

// unsent is a statement that was prepared outside of an operation.
type unsent struct{}

func (unsent) Close() error                               { return nil }
func (unsent) NumInput() int                              { return -1 }
func (unsent) Exec([]driver.Value) (driver.Result, error) { return nil, errOutside }
func (unsent) Query([]driver.Value) (driver.Rows, error)  { return nil, errOutside }
