package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// attempt is one run of an operation under a lease. Its steps, in order: begin,
// operation, reads at a conflict, ROLLBACK or COMMIT, ask the lock, release,
// event.
type attempt struct {
	guard *Guard
	ctx   context.Context // the caller's
	lease *lock.Lease
	tx    *dbguard.Tx
}

func (a *attempt) run(op Op, protects []any) (err error) {
	ctx, stop := a.lease.Within(a.ctx)
	defer stop()
	concluded := false
	defer func() {
		if !concluded { // somebody's code panics, or ends its goroutine
			a.abort()
		}
	}()

	err = a.begin(ctx, protects)
	if err == nil {
		err = op(a.tx.Context(), a.tx.DB())
	}
	err = a.conclude(err)
	concluded = true
	return err
}

// begin starts the transaction. The wait for a connection is shorter than the
// lease.
func (a *attempt) begin(ctx context.Context, protects []any) error {
	tx, err := dbguard.Begin(ctx, a.guard.db, dbguard.Options{
		Alive:        a.lease.Err,
		BeginTimeout: a.lease.TTL() / 2,
		EndTimeout:   a.guard.cfg.EndTimeout,
	})
	if err != nil {
		return err
	}
	a.tx = tx
	for _, row := range protects {
		if err := tx.Protect(row); err != nil {
			return err
		}
	}
	return nil
}

// abort undoes everything without a word.
func (a *attempt) abort() {
	if a.tx != nil {
		a.tx.Rollback()
	}
	_ = a.release()
}

// conclude ends the transaction after op and finds the words for what happened.
func (a *attempt) conclude(opErr error) error {
	if a.tx == nil {
		return a.rolledBack(opErr)
	}
	c := a.tx.Conflict()
	switch {
	case c == nil && opErr == nil:
		return a.commit()
	case c == nil:
		a.tx.Rollback()
		return a.rolledBack(opErr)
	case opErr != nil:
		a.tx.Rollback() // before the lock is asked: nobody waits for us longer than he must
	}
	f := a.find(c)
	if opErr == nil && !f.verdict.failure() {
		return a.commit() // to swallow a repeat is op's own decision
	}
	a.tx.Rollback()
	return a.refused(f, opErr)
}

func (a *attempt) commit() error {
	err := a.tx.Commit()
	switch {
	case err == nil:
		if gone := a.release(); errors.Is(gone, lock.ErrLost) {
			ev := a.event(notify.Lost, notify.Committed)
			ev.Loss = loss(gone)
			a.publish(ev)
		}
		return nil
	case errors.Is(err, dbguard.ErrCommitUnknown):
		a.lease.Abandon()
		a.tx.Rollback() // takes back what the operation has done in memory
		a.publish(a.event(notify.UnknownCommit, notify.Unknown))
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return a.rolledBack(err)
}

// rolledBack is the end of an operation that had no conflict on a protected
// row. The lock may have been lost all the same.
func (a *attempt) rolledBack(err error) error {
	gone := a.lease.Err()
	_ = a.release()
	if gone == nil || !errors.Is(gone, lock.ErrLost) {
		return err
	}
	ev := a.event(notify.Lost, notify.RolledBack)
	ev.Loss = loss(gone)
	a.publish(ev)
	if err == nil || errors.Is(err, lock.ErrLost) {
		return gone
	}
	return fmt.Errorf("%w; the operation ended with: %w", gone, err)
}

// finding is what a conflict on a protected row was found to mean.
type finding struct {
	conflict *dbguard.Conflict
	verdict  verdict
	lapsed   bool // the lease was no longer believed in
	loss     notify.Loss
	relation notify.Relation
	holder   string // owner id of the other holder, if there is one
}

// find judges a conflict. It asks the lock who has the key.
func (a *attempt) find(c *dbguard.Conflict) finding {
	gone := a.lease.Err()
	f := finding{conflict: c, lapsed: gone != nil, loss: loss(gone)}
	f.relation, f.holder = a.holder()
	f.verdict = f.judge(c)
	return f
}

// judge judges any conflict of the operation by what was found about the lock.
func (f finding) judge(c *dbguard.Conflict) verdict {
	return judge(evidence{
		Evidence: c.Evidence,
		kind:     c.Kind,
		locked:   true,
		lapsed:   f.lapsed,
		holder:   f.relation,
	})
}

// refused is the end of an operation with a conflict on a protected row.
func (a *attempt) refused(f finding, opErr error) error {
	_ = a.release()
	if !f.verdict.failure() {
		return a.repeated(f, opErr)
	}
	ev := a.event(notify.Overlap, notify.Refused)
	if f.verdict == lost {
		ev.Verdict = notify.Lost
	}
	f.describe(&ev)
	a.publish(ev)
	return &Interception{Event: ev, Conflict: f.conflict}
}

// repeated is the end of an operation with a conflict that says nothing about
// the lock. What op returns decides: its own words stand, and it may have
// swallowed one conflict and return another.
func (a *attempt) repeated(f finding, opErr error) error {
	c, ok := errors.AsType[*dbguard.Conflict](opErr)
	if !ok {
		return opErr
	}
	repeat := ErrDuplicate
	switch f.judge(c) {
	case duplicate:
	case stale:
		repeat = ErrStale
	default:
		return opErr
	}
	if f.relation == notify.HolderUnknown {
		a.guard.cfg.Logger.Warn("repeat not verified: the lock could not be asked", "key", a.lease.Key())
	}
	return fmt.Errorf("%w: %w", repeat, c)
}

// holder asks the lock who has the key, and for his owner id if it is another.
func (a *attempt) holder() (notify.Relation, string) {
	ctx, cancel := a.detached()
	defer cancel()
	h, err := a.lease.Inspect(ctx)
	switch {
	case err != nil:
		a.guard.cfg.Logger.Warn("ask who holds the lock", "key", a.lease.Key(), "error", err)
		return notify.HolderUnknown, ""
	case h.Owner == "":
		return notify.HolderNone, ""
	case h.Owner == a.lease.Owner():
		return notify.HolderSelf, ""
	}
	return notify.HolderOther, h.Owner
}

// release gives the lock back. A release that fails changes nothing about what
// was done: the Locker goes on trying.
func (a *attempt) release() error {
	err := a.lease.Release(a.ctx)
	if err != nil && !errors.Is(err, lock.ErrLost) {
		a.guard.cfg.Logger.Warn("release lock", "key", a.lease.Key(), "error", err)
	}
	return err
}

func (a *attempt) detached() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(a.ctx), a.guard.cfg.EndTimeout)
}
