package testdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/belaygo/belay/internal/sqlerr"
)

// A Multiplexer is a connector through a proxy that shares its sessions with other clients, and
// forgets what a client sets in one. Within a transaction a connection keeps a session. Outside, each
// statement goes to the next one.
type Multiplexer struct {
	Sessions []driver.Connector // of each, a connection has a session
	Scatters bool               // also within a transaction each statement goes to the next session
}

// Driver implements driver.Connector.
func (m *Multiplexer) Driver() driver.Driver { return m.Sessions[0].Driver() }

// Connect implements driver.Connector.
func (m *Multiplexer) Connect(ctx context.Context) (driver.Conn, error) {
	c := &multiplexed{scatters: m.Scatters}
	for _, s := range m.Sessions {
		conn, err := s.Connect(ctx)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.sessions = append(c.sessions, conn)
	}
	return c, nil
}

// A multiplexed is a connection to a proxy.
type multiplexed struct {
	sessions []driver.Conn
	at       int  // the session that had the last statement
	inside   bool // a transaction
	scatters bool
}

// route returns the session for a statement.
func (c *multiplexed) route(query string) driver.Conn {
	if !c.inside || c.scatters {
		c.at = (c.at + 1) % len(c.sessions)
	}
	switch words := strings.Fields(strings.ToUpper(query)); {
	case len(words) == 0:
	case words[0] == "BEGIN", words[0] == "START":
		c.inside = true
	case words[0] == "COMMIT", words[0] == "ROLLBACK" && len(words) == 1:
		c.inside = false
	}
	return c.sessions[c.at]
}

const erLockDeadlock = 1213 // MySQL and MariaDB have ended the transaction

func (c *multiplexed) learn(err error) {
	if sqlerr.IsMySQL(err, erLockDeadlock) {
		c.inside = false
	}
}

func (c *multiplexed) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.route(query).(driver.ExecerContext).ExecContext(ctx, query, args)
	c.learn(err)
	return res, err
}

func (c *multiplexed) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.route(query).(driver.QueryerContext).QueryContext(ctx, query, args)
	c.learn(err)
	return rows, err
}

// PrepareContext returns a statement of one session: a proxy knows where each was prepared.
func (c *multiplexed) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.route(query).(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *multiplexed) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *multiplexed) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.sessions[0].(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// BeginTx begins a transaction of database/sql, which the sessions' driver ends.
func (c *multiplexed) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.route("BEGIN").(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		c.inside = false
		return nil, err
	}
	return &multiplexedTx{tx, c}, nil
}

// Begin implements driver.Conn.
func (c *multiplexed) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// Close implements driver.Conn.
func (c *multiplexed) Close() error {
	var all []error
	for _, s := range c.sessions {
		all = append(all, s.Close())
	}
	return errors.Join(all...)
}

type multiplexedTx struct {
	driver.Tx
	c *multiplexed
}

func (t *multiplexedTx) Commit() error {
	t.c.inside = false
	return t.Tx.Commit()
}

func (t *multiplexedTx) Rollback() error {
	t.c.inside = false
	return t.Tx.Rollback()
}
