package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/notify"
)

// ending is how an attempt ended, and what is left to be done about the lock.
type ending struct {
	err     error
	outcome notify.Outcome
	done    bool     // what the key names has taken effect, now or before
	finding *finding // about the weightiest conflict, nil if there was none
}

// attempt runs the operation once, in a transaction of its own. Its steps, in
// order: begin, operation, reads at a conflict, ROLLBACK or COMMIT, ask the
// lock; if the operation swallowed the conflict, the lock is asked first. The release
// and the event follow when there is no other attempt.
func (c *call) attempt(ctx context.Context) (e ending) {
	ctx, end := c.guard.cfg.Observer.Start(ctx, StepTransaction, c.key)
	e.err = errPanicked
	begun := time.Now()
	defer func() {
		if c.tx != nil {
			c.tx.Rollback() // if somebody's code panics, or ends its goroutine
		}
		c.guard.metrics.txTime.Observe(time.Since(begun).Seconds())
		c.last = e
		end(e.err)
	}()
	if err := c.begin(ctx); err != nil {
		return c.rollback(err)
	}
	return c.conclude(c.work())
}

// work claims the request, if the operation serves one, and runs the operation.
func (c *call) work() error {
	if c.claiming != nil {
		if err := c.claim(); err != nil {
			return err
		}
		if !c.claiming.begun {
			c.claiming.begun, c.tries = true, 0 // those so far were of the claim
		}
	}
	return c.op(c.tx.Context(), c.tx.DB())
}

// begin starts the transaction. The wait for a connection is shorter than the
// lease.
func (c *call) begin(ctx context.Context) error {
	behind := c.tx != nil && c.tx.Behind()
	c.tx = nil
	for i := range c.holds {
		if c.holds[i].without != nil || behind { // what was seen before may have been old
			c.memory.Forget(c.holds[i].key)
		}
	}
	tx, err := dbtx.Begin(ctx, c.guard.db, dbtx.Options{
		Alive:        c.alive,
		Held:         c.held,
		BeginTimeout: c.ttl() / 2,
		EndTimeout:   c.guard.cfg.EndTimeout,
		Key:          c.rowKey(),
		Keyless:      c.rowKey() == "",
		Memory:       &c.memory,
		Logger:       c.guard.cfg.Logger,
	})
	if err != nil {
		return err
	}
	c.tx = tx
	return c.protect(tx)
}

// rowKey returns the key that protects the rows which the operation names: none if it is
// that of a request, as other requests may write the same rows.
func (c *call) rowKey() string {
	if c.isRequests(c.key) {
		return ""
	}
	return c.key
}

// protect names the rows that the keys protect.
func (c *call) protect(tx *dbtx.Tx) error {
	for i := range c.holds {
		if err := c.holds[i].protect(tx); err != nil {
			return err
		}
	}
	return nil
}

func (h *hold) protect(tx *dbtx.Tx) error {
	defer tx.Under(h.key)()
	for _, row := range h.rows {
		if err := tx.Protect(row); err != nil {
			return err
		}
	}
	return nil
}

// conclude ends the transaction after op and finds out what happened.
func (c *call) conclude(opErr error) ending {
	if opErr == nil {
		opErr = c.tx.Poisoned()
	}
	if opErr != nil {
		c.tx.Rollback() // before the lock is asked: nobody waits for us longer than he must
	}
	conflicts := c.tx.Conflicts()
	switch {
	case len(conflicts) == 0 && opErr == nil:
		return c.commit()
	case len(conflicts) == 0:
		return c.rollback(opErr)
	}
	f := c.find(conflicts)
	fail.Point("guard/judged")
	if opErr == nil && !f.verdict.failure() {
		return c.commit() // to swallow a repeat is op's own decision
	}
	c.tx.Rollback()
	if cause := c.tx.Unsafe(); cause != nil && f.repeats(opErr) {
		opErr = fmt.Errorf("guard: done before, but a failover may lose it: %w", cause)
	}
	return ending{err: opErr, outcome: notify.OutcomeRefused, done: f.doneBefore(opErr), finding: f}
}

func (c *call) rollback(err error) ending {
	if c.tx != nil {
		c.tx.Rollback()
	}
	if conflict, ok := errors.AsType[*dbguard.ConflictError](err); ok && !conflict.Evidence.Protected {
		c.guard.metrics.unjudged.Inc()
	}
	return ending{err: err, outcome: notify.OutcomeRolledBack}
}

func (c *call) commit() ending {
	if err := c.covered(); err != nil {
		return c.rollback(err)
	}
	returned := false
	defer func() {
		if !returned { // the driver has panicked: the COMMIT may be on its way
			_ = c.finish(c.unknown(errPanicked))
		}
	}()
	err := c.tx.Commit()
	returned = true
	switch {
	case err == nil:
		return c.committed()
	case errors.Is(err, dbtx.ErrCommitUnknown):
		return c.resolve(err)
	}
	return c.rollback(err)
}

func (c *call) committed() ending {
	for _, o := range c.outages {
		o.committed.Add(1)
	}
	return ending{outcome: notify.OutcomeCommitted, done: true}
}

// covered refuses a transaction that nothing but a missing lock would guard, and
// counts one that nothing but the locks do. Each key without a lock needs a covered row:
// one of another key excludes nobody under this one.
func (c *call) covered() error {
	cover := c.tx.Coverage()
	switch {
	case c.without() == nil:
		c.guard.metrics.countUncovered(cover.Uncovered, c.guard.cfg.Logger)
		return nil
	case !cover.Wrote:
		return nil
	}
	for i := range c.holds {
		if h := &c.holds[i]; h.without != nil && (!cover.Covered || !slices.Contains(cover.Keys, h.key)) {
			return fmt.Errorf("%w: only the lock %q would guard what was written: %w", ErrUnavailable, h.key, h.without)
		}
	}
	return nil
}

// resolve finds out whether a commit took effect whose answer did not come. The
// leases are renewed meanwhile.
func (c *call) resolve(err error) ending {
	ctx, cancel := detached(c.ctx, c.guard.cfg.EndTimeout)
	defer cancel()
	fail.Point("guard/before-resolve")
	outcome, cause := c.tx.Resolve(ctx)
	fail.Point("guard/resolved")
	switch outcome {
	case dbtx.Committed:
		return c.committed()
	case dbtx.NotCommitted:
		return ending{err: fmt.Errorf("guard: the commit did not take effect: %w", ownLimitError{errors.Unwrap(err)}), outcome: notify.OutcomeRolledBack}
	}
	return c.unknown(fmt.Errorf("%w: %w; %w", ErrUnknown, err, notLostError{cause}))
}

func (c *call) unknown(err error) ending {
	for _, o := range c.outages {
		o.unknown.Add(1)
	}
	return ending{err: err, outcome: notify.OutcomeUnknown}
}
