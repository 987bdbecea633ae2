package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/sqlconn"
)

// ErrNoServer is returned by Visit for a server that a Server does not identify.
var ErrNoServer = errors.New("dbguard: the server cannot be told from another")

// A Visitor reads what the server of a connection has committed.
type Visitor struct {
	conn    *sql.Conn
	dialect dialect.Dialect
	session dialect.Session
	discard bool // the session has a setting that the pool must not keep
}

// Visit runs f with a connection of db's pool. It ends with ctx.
func Visit(ctx context.Context, db *gorm.DB, f func(v *Visitor) error) error {
	d, ok := dialect.Of(db.Name())
	if !ok {
		return fmt.Errorf("dbguard: no support for the database %q", db.Name())
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	v := &Visitor{dialect: d}
	v.conn, err = pinned.Connect(ctx, pool, func(c *sql.Conn) (err error) {
		v.session, err = d.ReadSession(ctx, c)
		return err
	})
	if err != nil {
		return err
	}
	err = sqlconn.Watch(v.conn, func() error {
		err := ErrNoServer
		if v.Server() != (Server{}) {
			err = f(v)
		}
		// The reads may have begun a transaction where there is no autocommit.
		if d.Name == "mysql" && v.exec(ctx, "ROLLBACK") != nil {
			v.discard = true
		}
		return err
	})
	if v.discard {
		sqlconn.Discard(v.conn)
	}
	_ = v.conn.Close()
	return err
}

// Server returns the server that is visited.
func (v *Visitor) Server() Server { return serverOf(v.session) }

// Follows reports whether the server is another one than then, or may have been restarted since then
// was read: MySQL and MariaDB count in seconds.
func (v *Visitor) Follows(ctx context.Context, then Server) (bool, error) {
	if !v.Server().Is(then) {
		return true, nil
	}
	s := then.session()
	s.Read = s.Read.Add(-2 * time.Second) // a restart that may have been just before counts, too
	return v.dialect.Restarted(ctx, v.conn, s, v.session)
}

// Read runs f in a transaction that sees all that the server's cluster has committed by now, and
// rolls it back. It returns an error unless the server takes writes: another server may have more
// commits otherwise, or fewer.
func (v *Visitor) Read(ctx context.Context, f func(c *sql.Conn) error) error {
	if err := v.catchUp(ctx); err != nil {
		return err
	}
	if err := v.begin(ctx); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	err := f(v.conn)
	if err == nil {
		err = v.same(ctx) // inside of the transaction, which a proxy sends to one server
	}
	if ended := v.exec(ctx, "ROLLBACK"); ended != nil {
		v.discard = true
		err = errors.Join(err, ended)
	}
	if err != nil {
		return err
	}
	return v.dialect.Writer(ctx, v.conn, v.session)
}

// catchUp waits for what the cluster has committed. In a transaction it would not wait.
func (v *Visitor) catchUp(ctx context.Context) error {
	if v.session.Group && v.session.Behind {
		v.discard = true
		if err := v.exec(ctx, "SET SESSION group_replication_consistency = 'BEFORE'"); err != nil {
			return fmt.Errorf("wait for what the group has committed: %w", err)
		}
	}
	if v.dialect.CatchUp == nil {
		return nil
	}
	return v.dialect.CatchUp(ctx, v.conn, v.session)
}

// begin begins a transaction that waits for no other one, whatever the session's isolation level is.
func (v *Visitor) begin(ctx context.Context) error {
	if v.dialect.Name != "mysql" {
		return v.exec(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED")
	}
	for _, query := range []string{"ROLLBACK", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"} {
		if err := v.exec(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// same returns an error if a proxy has sent the transaction to another server.
func (v *Visitor) same(ctx context.Context) error {
	now, err := v.dialect.ReadSession(ctx, v.conn)
	if err == nil && !serverOf(now).Is(v.Server()) {
		err = fmt.Errorf("the transaction was on another server, %s instead of %s", now.Server, v.session.Server)
	}
	return err
}

func (v *Visitor) exec(ctx context.Context, query string) error {
	_, err := v.conn.ExecContext(ctx, query)
	return err
}
