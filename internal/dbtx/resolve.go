package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/wait"
)

// Resolve returns the outcome of the transaction after Commit has returned
// ErrCommitUnknown. It relies on proof only:
//
//   - PostgreSQL knows the outcome by the number of the transaction, whatever that wrote. A
//     transaction without a number has written nothing, unless statements wrote rows
//     elsewhere, as to a foreign table, or may have, by a function or a trigger in a database
//     that has foreign tables: then the outcome is Unresolved.
//   - MySQL and MariaDB do not know it. If the transaction is not over, its rows are locked,
//     and its session is killed, unless that is another client's by now, behind a pooler. The
//     protected rows that it wrote by plain inserts and versioned statements are read on
//     another connection. Until ctx ends, the reads wait for locks on the rows. The
//     transaction was committed if a row has its [dbguard.Stamp], or a key that the database
//     generated for it. It was not committed if a row still has its old version, or has the
//     new one with another's stamp, or if a row that it inserted, and cannot have renamed, is
//     missing.
//   - On PostgreSQL rows are read, too, if it has crashed since, because it may have
//     given the number to another transaction.
//
// While the database cannot be reached, starts, ends or takes no writes, Resolve tries
// again until ctx ends; Options.EndTimeout bounds that if ctx has no deadline.
//
// A row of equal values proves nothing: another transaction may have written it. Without
// proof the outcome is Unresolved, and the error gives the reason. So it is if the database
// is another server by then, as behind a balancer or after a failover, or takes no writes
// after the reads: a demoted primary, a standby, a member that has lost its cluster. A
// restarted primary with semi-synchronous replication proves no commit, because it shows the
// transactions in its binary log before the replica has them.
//
// On a server that only resembles MySQL or PostgreSQL the transaction was committed if a row has its
// stamp. Nothing else proves an outcome: see [dialect.Family.Resembles].
//
// If a row proves that the transaction was not committed, Alive and Held must still
// succeed: a caller that has the lock may delete rows and make them again. The functions
// of OnRollback are called unless the outcome is Committed.
func (t *Tx) Resolve(ctx context.Context) (Outcome, error) {
	t.mu.Lock()
	unknown := t.unknown
	t.mu.Unlock()
	if !unknown {
		return Unresolved, errors.New("dbguard: resolve commit: its outcome is known")
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.options.EndTimeout)
		defer cancel()
	}
	o, err := t.findOut(ctx)
	for dialect.Unreachable(err) && wait.Sleep(ctx, reconnectPause, nil) == nil {
		o, err = t.findOut(ctx)
	}
	t.resolved(o)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err) // a driver may only report a bad connection
	}
	if err != nil {
		return o, fmt.Errorf("resolve commit: %w", err)
	}
	return o, nil
}

// resolved notes the outcome of a commit that was unknown.
func (t *Tx) resolved(o Outcome) {
	t.mu.Lock()
	was := t.unknown
	t.unknown = false
	t.mu.Unlock()
	if was && o == Committed {
		t.journal.Committed()
	}
	if was {
		t.journal.Undo()
	}
}

func (t *Tx) findOut(ctx context.Context) (Outcome, error) {
	switch {
	case !t.journal.Wrote():
		return Committed, nil // it has changed nothing
	case t.conn.Session.Proven().Resembles():
		return t.findOwn(ctx)
	case t.conn.Session.Numbers && t.xid == "":
		return t.findElsewhere(ctx)
	}
	c, now, err := t.reconnect(ctx)
	if err != nil {
		return Unresolved, err
	}
	return t.reading(ctx, c, func() (Outcome, error) { return t.findOutBy(ctx, c, now) })
}

// findOutBy finds out by a connection to the server that had the transaction.
func (t *Tx) findOutBy(ctx context.Context, c *sql.Conn, now dialect.Session) (o Outcome, err error) {
	var restarted, still bool
	err = t.atServer(ctx, c, func() (err error) {
		restarted, err = t.dialect.Restarted(ctx, c, t.conn.Session, now)
		if err == nil && t.outvoted {
			still, err = t.dialect.StillMember(ctx, c, t.conn.Session)
		}
		return err
	})
	switch {
	case err != nil:
		return Unresolved, err
	case still:
		return NotCommitted, nil
	}
	if t.xid != "" && !restarted {
		o, err = t.readOutcome(ctx, c)
	} else {
		o, err = t.readRows(ctx, c, now, restarted)
	}
	if err == nil && o == Committed && restarted && (now.SemiSync || t.conn.Session.SemiSync) {
		err = errors.New("the server has restarted, and shows what its replica may lack")
	}
	if err == nil {
		err = t.atServer(ctx, c, func() error { return t.dialect.Writer(ctx, c, now) })
	}
	if err != nil {
		return Unresolved, err
	}
	return o, nil
}

// errElsewhere is the error of a transaction whose rows another server may keep.
var errElsewhere = errors.New("rows were written, or may have been, but the server has given the transaction no number: another one may keep them")

// findElsewhere decides on a transaction to which PostgreSQL has given no number: it has written
// nothing there. What it wrote to a foreign table another server keeps, which may not have
// committed it. The count of its rows is 0 if a function, a trigger or a part of the statement
// wrote them.
func (t *Tx) findElsewhere(ctx context.Context) (Outcome, error) {
	if t.journal.WroteRows() {
		return Unresolved, errElsewhere
	}
	c, err := pinned.Connect(ctx, t.pool, func(*sql.Conn) error { return nil }) // any server has the catalogue
	if err != nil {
		return Unresolved, err
	}
	return t.reading(ctx, c, func() (Outcome, error) {
		var foreign bool
		if err := c.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_foreign_table)").Scan(&foreign); err != nil {
			return Unresolved, err
		}
		t.reader.Use(t.front.On(c), c)
		if foreign && t.journal.WroteUncounted() {
			return Unresolved, errElsewhere
		}
		return Committed, nil
	})
}

// findOwn looks for a row that this transaction alone can have written, on a server that only
// resembles one that Belay knows. Whichever of its nodes shows it, the transaction was
// committed. Nothing else proves anything there.
func (t *Tx) findOwn(ctx context.Context) (Outcome, error) {
	family := t.conn.Session.Proven()
	if family.CommitsInParts() {
		return Unresolved, fmt.Errorf("the database is %s, which may commit a part of a transaction", family)
	}
	c, err := pinned.Connect(ctx, t.pool, func(*sql.Conn) error { return nil })
	if err != nil {
		return Unresolved, err
	}
	return t.reading(ctx, c, func() (Outcome, error) {
		p, err := t.prove(ctx, c, t.journal.Images(), false)
		if err == nil && p.Outcome != Committed {
			err = fmt.Errorf("the database is %s: that a row is missing or old proves nothing there", family)
		}
		if err == nil {
			err = t.dialect.Writer(ctx, c, t.conn.Session)
		}
		if err != nil {
			return Unresolved, err
		}
		return Committed, nil
	})
}

// readRows sees to it that the transaction is over, and decides by the rows that it wrote.
func (t *Tx) readRows(ctx context.Context, c *sql.Conn, now dialect.Session, restarted bool) (Outcome, error) {
	images := t.journal.Images()
	if len(images) == 0 {
		return Unresolved, errors.New("no protected row was written by an insert or a versioned update")
	}
	if err := t.endSession(ctx, c, now, restarted, images); err != nil {
		return Unresolved, err
	}
	if t.dialect.CatchUp != nil {
		if err := t.dialect.CatchUp(ctx, c, now); err != nil {
			return Unresolved, err
		}
	}
	if !restarted && t.dialect.AwaitCommit != nil { // before the rows are read: a pooler may hide a crash
		await := func() error { return t.dialect.AwaitCommit(ctx, c, t.conn.Session, t.database.pooled.Load()) }
		if err := t.atServer(ctx, c, await); err != nil {
			return Unresolved, err
		}
	}
	// Only MySQL and MariaDB keep counting up after a rollback, unless they crash. A Galera
	// cluster does not: its nodes number rows by the number of nodes.
	p, err := t.prove(ctx, c, images, !restarted && t.dialect.Name == "mysql" && !t.conn.Session.Galera)
	if err == nil && p.Held {
		err = t.options.Alive()
	}
	if err == nil && p.Held {
		err = t.options.Held()
	}
	if err != nil {
		return Unresolved, err
	}
	return p.Outcome, nil
}

// readOutcome ends the transaction, if it still runs, and reads its status on PostgreSQL.
func (t *Tx) readOutcome(ctx context.Context, c *sql.Conn) (Outcome, error) {
	if err := t.dialect.EndTransaction(ctx, c, t.xid); err != nil {
		return Unresolved, err
	}
	for {
		var status sql.NullString
		if err := c.QueryRowContext(ctx, "SELECT pg_xact_status($1::xid8)", t.xid).Scan(&status); err != nil {
			return Unresolved, fmt.Errorf("read the status of the transaction: %w", err)
		}
		switch status.String {
		case "committed":
			return Committed, nil
		case "aborted":
			return NotCommitted, nil
		case "in progress": // its session is about to end
		default:
			return Unresolved, errors.New("the database does not remember the transaction")
		}
		if err := wait.Sleep(ctx, dialect.PollInterval, nil); err != nil {
			return Unresolved, fmt.Errorf("the transaction is in progress: %w", err)
		}
	}
}

// prove reads the rows for a proof of the transaction's outcome. They were committed
// together or not at all, so the proof of one row is enough.
func (t *Tx) prove(ctx context.Context, c *sql.Conn, images []journal.Image, generates bool) (journal.Proof, error) {
	ctx, from := outside{ctx}, t.front.On(c)
	var found journal.Proof
	for _, img := range images {
		img, err := t.asKept(ctx, c, img)
		if err != nil {
			return journal.Proof{}, err
		}
		p, err := t.proofOf(ctx, c, from, img, generates)
		if err != nil {
			return journal.Proof{}, err
		}
		switch {
		case p.Outcome == Unresolved, found.Outcome != Unresolved && p.Held:
		case found.Outcome == Unresolved, found.Held:
			found = p
		case p.Outcome != found.Outcome:
			return journal.Proof{}, errors.New("the rows contradict each other")
		}
	}
	if found.Outcome == Unresolved {
		return journal.Proof{}, errors.New("no row that was written proves whether it was by this transaction")
	}
	return found, nil
}

// proofOf reads the row of an image. An inserted row that is not found by its name may
// be found by its primary key: the database may store the name in another form.
func (t *Tx) proofOf(ctx context.Context, c *sql.Conn, from protected.Loader, img journal.Image, generates bool) (journal.Proof, error) {
	row, err := t.readLocking(ctx, c, from, img.Row, img.Model)
	if byKey := img.ByKey(); err == nil && row == nil && byKey != nil {
		row, err = t.readLocking(ctx, c, from, byKey, img.Model)
	}
	if err != nil {
		return journal.Proof{}, err
	}
	return img.Proof(row, generates), nil
}

// asKept returns an image without its stamp if the column does not hold that: without strict
// mode MySQL and MariaDB cut it, and then it would be taken for another's. So would one that a
// trigger has set: another stamp proves nothing then.
func (t *Tx) asKept(ctx context.Context, c *sql.Conn, img journal.Image) (journal.Image, error) {
	name := img.StampColumn()
	if name == "" {
		return img, nil
	}
	in := catalogue.Source{Dialect: t.dialect.Name, Conn: c}
	facts, err := in.Facts(ctx, img.Row.Table)
	if err != nil {
		return img, err
	}
	if facts.Triggers {
		img = img.OnTriggers()
	}
	if t.dialect.Name != "mysql" || t.conn.Session.Strict {
		return img, nil
	}
	columns, err := in.Columns(ctx, img.Row.Table)
	if err != nil {
		return img, err
	}
	if _, narrow := columns[strings.ToLower(name)].Limit(t.dialect.Name); narrow {
		img = img.WithoutStamp()
	}
	return img, nil
}

// outside is a context that belongs to no guarded transaction.
type outside struct{ context.Context }

func (o outside) Value(key any) any {
	if key == (txKey{}) {
		return nil
	}
	return o.Context.Value(key)
}

// CatchUp waits, after the end of the transaction, until its server has applied all commits
// of its cluster. It reports false if that is unknown: the server does not report it, or was
// not reached within Options.EndTimeout.
func (t *Tx) CatchUp() bool {
	if t.dialect.CatchUp == nil || !t.conn.Session.Galera {
		return false
	}
	ctx, cancel := t.Detached()
	defer cancel()
	c, now, err := t.reconnect(ctx)
	if err != nil {
		return false
	}
	_, err = t.reading(ctx, c, func() (Outcome, error) { return Unresolved, t.dialect.CatchUp(ctx, c, now) })
	return err == nil
}

// readLocking reads a row by its name; nil if it is not there. It repeats a
// NOWAIT read, because a waiting read would continue at the server after its client has
// given up.
func (t *Tx) readLocking(ctx context.Context, c *sql.Conn, from protected.Loader, r *protected.Row, model statement.Model) (statement.Value, error) {
	lock := "FOR UPDATE NOWAIT"
	if t.dialect.Name == "sqlite" {
		lock = ""
	}
	for {
		var row statement.Value
		err := t.atServer(ctx, c, func() (err error) {
			row, err = from.Load(ctx, protected.Query{Row: r, Model: model, Lock: lock})
			return err
		})
		switch {
		case err == nil:
			return row, nil
		case dialect.IsSyntax(err) && lock != "FOR UPDATE": // an old server
			lock = "FOR UPDATE"
			continue
		case !dialect.IsLocked(err):
			return nil, err
		}
		if err := wait.Sleep(ctx, dialect.PollInterval, nil); err != nil {
			return nil, fmt.Errorf("another transaction holds the row: %w", err)
		}
	}
}

// reconnectPause is how long to wait before the next try to reach a database that could
// not be reached.
const reconnectPause = 100 * time.Millisecond
