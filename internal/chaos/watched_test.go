package chaos_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// doKey is where the context of a call of Do carries its name and key. What is sent
// to the lock and to the database has it.
type doKey struct{}

type doing struct {
	do, key string
	begins  bool // its attempts begin with their BEGIN: those of other calls, with their operation
	side    bool // it is no call of the oracle: see sideOf
}

// doOf returns the call that ctx is of, "" if it is of none that the oracle judges.
func doOf(ctx context.Context) string {
	if d := doingOf(ctx); !d.side {
		return d.do
	}
	return ""
}

// sideOf returns a context of what is judged by its effects alone: a message that is applied, a call of the
// provider. Its locks and statements are not in the journal, but its COMMITs are lost, too.
func sideOf(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, doKey{}, doing{do: name, side: true})
}

func doingOf(ctx context.Context) doing {
	d, _ := ctx.Value(doKey{}).(doing)
	return d
}

// watchedEngine notes when the engine grants and releases.
type watchedEngine struct {
	redislock.Engine
	journal *journal
}

func (e watchedEngine) Acquire(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	e.journal.write(line{At: asked, Do: doOf(ctx), Key: h.Key, Owner: h.Owner})
	g, err := e.Engine.Acquire(ctx, h, ttl)
	if err == nil {
		e.journal.write(line{At: granted, Do: doOf(ctx), Key: h.Key, Owner: h.Owner, Node: g.Node})
	}
	return g, err
}

func (e watchedEngine) Renew(ctx context.Context, hs []lockengine.Request, ttl time.Duration) []error {
	sent := now()
	errs := e.Engine.Renew(ctx, hs, ttl)
	for i, h := range hs {
		if errs[i] == nil {
			e.journal.write(line{At: renewed, Key: h.Key, Owner: h.Owner, Sent: sent})
		}
	}
	return errs
}

func (e watchedEngine) Release(ctx context.Context, h lockengine.Request) error {
	e.journal.write(line{At: release, Do: doOf(ctx), Key: h.Key, Owner: h.Owner})
	err := e.Engine.Release(ctx, h)
	l := line{At: released, Do: doOf(ctx), Key: h.Key, Owner: h.Owner, Result: "freed"}
	switch {
	case errors.Is(err, lockengine.ErrNotHeld):
		l.Result = "gone"
	case err != nil:
		l.Result = unanswered
	}
	e.journal.write(l)
	return err
}

func (e watchedEngine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	h, err := e.Engine.Inspect(ctx, key)
	l := line{At: inspected, Do: doOf(ctx), Key: key, Owner: h.Owner}
	if err != nil {
		l.Result = unanswered
	}
	e.journal.write(l)
	return h, err
}

// unanswered is the result of a request to the engine that got no answer, and of a
// COMMIT without an answer or with an error.
const unanswered = "unanswered"

// watchedPublisher notes what is published, before and after.
type watchedPublisher struct {
	notify.Publisher

	journal *journal
}

func (p watchedPublisher) Publish(ctx context.Context, ev notify.Event) error {
	p.journal.write(line{At: event, Do: doOf(ctx), Key: ev.Key, Event: &ev})
	err := p.Publisher.Publish(ctx, ev)
	l := line{At: stored, Do: doOf(ctx), ID: ev.ID}
	if err != nil {
		l.Result = err.Error()
	}
	p.journal.write(l)
	return err
}

// watchedConnector notes when the database answers a write, a COMMIT or a
// ROLLBACK.
type watchedConnector struct {
	driver.Connector

	worker *worker
}

func (c watchedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	w := &watchedConn{worker: c.worker}
	conn, err := c.Connector.Connect(context.WithValue(ctx, cableKey{}, &w.cable))
	if err != nil {
		return nil, err
	}
	w.driverConn = conn.(driverConn)
	if known := w.known(); known != nil {
		w.cable, w.session = known.cable, known.session
		return w, nil
	}
	if w.session, err = sessionOf(ctx, w.driverConn, c.worker.kind.self); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return w, nil
}

// Raw is how pgxguard reaches the driver's connection.
func (c *watchedConn) Raw() driver.Conn { return c.driverConn }

// driverConn is what the connections of all drivers can do and database/sql uses.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
}

type watchedConn struct {
	driverConn

	worker  *worker
	cable   *cable
	session session
}

// IsValid implements driver.Validator, as MySQL's connections do.
func (c *watchedConn) IsValid() bool {
	v, ok := c.driverConn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c *watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	var loss commitLoss
	if d := doingOf(ctx); d.do != "" && query == "COMMIT" {
		loss = c.worker.drawLoss(d)
	}
	if do := doOf(ctx); do != "" && query == "COMMIT" {
		c.worker.journal.write(line{At: committing, Do: do, Session: c.session.id, Server: c.session.server, Result: string(loss)})
	}
	if loss == "" {
		res, err = c.driverConn.ExecContext(ctx, query, args)
	} else {
		res, err = c.lose(ctx, loss)
	}
	c.note(ctx, query, err)
	return res, err
}

// QueryContext runs the INSERT of MariaDB and of PostgreSQL: it returns the row.
func (c *watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.driverConn.QueryContext(ctx, query, args)
	c.note(ctx, query, err)
	return rows, err
}

// begins reports whether a statement begins an attempt of a call that the oracle judges.
func (c *watchedConn) begins(ctx context.Context, query string) bool {
	verb, _, _ := strings.Cut(query, " ")
	return doOf(ctx) != "" && doingOf(ctx).begins && verb == c.worker.kind.begins
}

// begun notes that an attempt begins.
func (c *watchedConn) begun(ctx context.Context, how string) {
	d := doingOf(ctx)
	c.worker.journal.write(line{At: begun, Do: d.do, Key: d.key, Result: how})
}

func (c *watchedConn) note(ctx context.Context, query string, err error) {
	do := doOf(ctx)
	if do == "" {
		return
	}
	if unheard(err) {
		c.worker.journal.write(line{At: broken, Do: do})
	}
	verb, rest, _ := strings.Cut(query, " ")
	if verb == "SET" && strings.HasPrefix(rest, "STATEMENT ") { // MariaDB's, before another one
		_, statement, _ := strings.Cut(rest, " FOR ")
		verb, _, _ = strings.Cut(statement, " ")
	}
	switch {
	case err == nil && c.begins(ctx, query):
		c.begun(ctx, "")
	case verb == "SELECT":
		c.worker.journal.write(line{At: looked, Do: do})
	case verb == "INSERT", verb == "UPDATE":
		c.worker.journal.write(line{At: wrote, Do: do, Session: c.session.id, Server: c.session.server})
	case rest == "" && (verb == "COMMIT" || verb == "ROLLBACK"): // ROLLBACK TO a savepoint ends nothing
		l := line{At: ended, Do: do}
		if err != nil && verb == "COMMIT" { // the server may go on with it, also after an error
			l.Result = unanswered
		}
		c.worker.journal.write(l)
	}
}
