package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// attempt runs the operation once, in a transaction of its own. Its steps, in
// order: begin, operation, reads at a conflict, ROLLBACK or COMMIT, ask the
// lock; if the operation swallowed the conflict, the lock is asked first. The release
// and the event follow when there is no other attempt.
func (s *series) attempt(ctx context.Context, op Op) ending {
	ctx, end := s.cfg.Observer.Start(ctx, StepTransaction, s.plan.main)
	s.last = ending{err: errPanicked}
	begun := time.Now()
	defer func() {
		if s.tx != nil {
			s.tx.Rollback() // if somebody's code panics, or ends its goroutine
		}
		s.metrics.txTime.Observe(time.Since(begun).Seconds())
		end(s.last.err)
	}()
	prepared, err := s.prelude(ctx, s.defers())
	var refused error
	if s.tx != nil {
		refused = s.tx.Abandon()
	}
	if refused != nil {
		prepared, err = s.prelude(ctx, false)
	}
	switch {
	case !prepared:
		s.last = s.rollback(err)
	case err != nil:
		s.last = s.conclude(err)
	default:
		s.last = s.conclude(s.work(op))
	}
	if s.last.outcome == notify.OutcomeCommitted {
		s.claims.keep(s.canary, s.tx)
		s.tx.KeepApart(refused)
	}
	return s.last
}

// defers reports whether a transaction begins with statements of Belay that a driver may send at once.
func (s *series) defers() bool {
	switch s.claims.(type) {
	case noClaims, *crew: // the members claim within the operation
		return slices.ContainsFunc(s.change.steps, inserts)
	}
	return true
}

// prelude does what comes before the operation: it begins the transaction, and claims the request,
// if the operation serves one. prepared is false if the transaction was not begun, or a row cannot be
// protected.
func (s *series) prelude(ctx context.Context, defers bool) (prepared bool, err error) {
	if err := s.begin(ctx, defers); err != nil {
		return false, err
	}
	if s.tx.Deferring() {
		if err := s.change.look(s.tx); err != nil {
			return true, err
		}
	}
	if err := s.claims.claim(s.tx, s.held); err != nil {
		return true, err
	}
	return true, s.tx.Flush()
}

// work runs the operation.
func (s *series) work(op Op) error {
	s.budget.begin()
	return op(s.tx.Context(), s.tx.DB())
}

// begin starts the transaction. The wait for a connection is shorter than the
// lease.
func (s *series) begin(ctx context.Context, defers bool) error {
	behind := s.tx != nil && s.tx.Behind()
	s.tx = nil
	for i := range s.plan.keys {
		if key := s.plan.keys[i].key; behind || s.held.state(key).without != nil { // what was seen before may have been old
			s.memory.Forget(key)
		}
	}
	tx, err := s.open(ctx, defers)
	if err != nil {
		return err
	}
	s.tx = tx
	return s.plan.protect(tx)
}

// open waits for a connection and begins a transaction.
func (s *series) open(ctx context.Context, defers bool) (*dbtx.Tx, error) {
	s.gate.begin(s.pass)
	defer s.gate.begun()
	return dbtx.Begin(ctx, s.db, dbtx.Options{
		Alive:        s.held.alive,
		Held:         s.held.confirm,
		BeginTimeout: s.held.ttl() / 2,
		Defers:       defers,
		Begun:        s.canary.see,
		EndTimeout:   s.cfg.EndTimeout,
		Family:       dialect.Family(s.cfg.Family),
		Key:          s.plan.protecting(s.plan.main),
		Keyless:      s.plan.protecting(s.plan.main) == "",
		Memory:       &s.memory,
		SQL:          s.sql,
		Logger:       s.cfg.Logger,
	})
}

// conclude ends the transaction after op and finds out what happened.
func (s *series) conclude(opErr error) ending {
	if opErr == nil {
		opErr = s.tx.Poisoned()
	}
	if opErr != nil {
		s.tx.Rollback() // first, so that waiters are not held up by the query of the lock
	}
	conflicts := s.tx.Conflicts()
	switch {
	case len(conflicts) == 0 && opErr == nil:
		return s.commit()
	case len(conflicts) == 0:
		return s.rollback(s.outrun(opErr, false))
	}
	f := s.find(conflicts)
	fail.Point("guard/judged")
	if opErr == nil && !f.verdict.failure() {
		return s.commit() // op may choose to ignore a duplicate
	}
	s.tx.Rollback()
	if cause := s.tx.Unseen(); cause != nil {
		return unknown(fmt.Errorf("%w: %w", ErrUnknown, cause))
	}
	if cause := s.tx.Unsafe(); cause != nil && f.repeats(opErr) {
		opErr = fmt.Errorf("guard: done before, but a failover may lose it: %w", cause)
	}
	return ending{err: opErr, outcome: notify.OutcomeRefused, finding: f}
}

// find judges the weightiest conflict on a row of each key, and on a claim, and returns the
// finding that shows a failure of a lock, or else the first.
func (s *series) find(conflicts []*dbguard.ConflictError) *finding {
	found := make([]*finding, len(conflicts))
	for i, conflict := range conflicts {
		found[i] = s.findOne(conflict)
	}
	return gravest(found)
}

// findOne judges a conflict. It asks the lock who has the row's key.
func (s *series) findOne(conflict *dbguard.ConflictError) *finding {
	k, gone := s.held.state(conflict.Key), s.held.lapsed(conflict.Key)
	f := &finding{
		key:      k.key,
		nested:   k.nested,
		conflict: conflict,
		locked:   k.without == nil,
		lapsed:   gone != nil && !errors.Is(gone, lock.ErrClosed),
		loss:     lossOf(gone),
	}
	f.relation, f.holder = s.held.holder(conflict.Key)
	f.foreign = onClaim(conflict) && s.claims.foreign(s.ctx)
	f.verdict = f.judge(conflict)
	return f
}

func (s *series) rollback(err error) ending {
	if s.tx != nil {
		s.tx.Rollback()
		if cause := s.tx.Unseen(); cause != nil {
			return unknown(fmt.Errorf("%w: %w", ErrUnknown, cause))
		}
	}
	if conflict, ok := errors.AsType[*dbguard.ConflictError](err); ok && !conflict.Evidence.Protected {
		s.metrics.unjudged.Inc()
	}
	return ending{err: overdue(s.ctx, err), outcome: notify.OutcomeRolledBack}
}

// overdue adds the end of the caller's context to the error of a broken connection: a driver
// breaks the connection of a statement, or of a dial, that must not go on, and some name only
// what they did.
func overdue(ctx context.Context, err error) error {
	end := ctx.Err()
	if until, ok := ctx.Deadline(); ok && end == nil && !time.Now().Before(until) {
		end = context.DeadlineExceeded // a socket's timer may be earlier than the context's
	}
	if end == nil || errors.Is(err, end) || !dbtx.Transient(err) {
		return err
	}
	return fmt.Errorf("%w: %w", end, err)
}

func (s *series) commit() ending {
	if err := s.covered(); err != nil {
		return s.rollback(err)
	}
	s.last.outcome = notify.OutcomeUnknown // if the driver panics: the COMMIT may be on its way
	err := s.tx.Commit()
	if errors.Is(err, dbtx.ErrCommitUnknown) {
		return s.resolve(err) // where somebody's code may panic, too
	}
	s.last.outcome = ""
	if err == nil {
		return ending{outcome: notify.OutcomeCommitted}
	}
	return s.rollback(s.outrun(err, true))
}

// covered rejects a transaction whose writes only a missing lock would protect, and
// counts one whose writes only its locks protect. Each key without a lock needs a covered
// row: a row of another key excludes nobody under this one.
func (s *series) covered() error {
	cover := s.tx.Coverage()
	switch {
	case s.held.without() == nil:
		s.metrics.countUncovered(cover.Uncovered, s.cfg.Logger)
		return nil
	case !cover.Wrote:
		return nil
	}
	for i := range s.plan.keys {
		k := s.held.state(s.plan.keys[i].key)
		if k.without != nil && (!cover.Covered || !slices.Contains(cover.Keys, k.key)) {
			return fmt.Errorf("%w: only the lock %q would guard what was written: %w", ErrUnavailable, k.key, k.without)
		}
	}
	return nil
}

// resolve finds out whether a commit took effect whose answer did not come. The
// leases are renewed meanwhile.
func (s *series) resolve(err error) ending {
	ctx, cancel := detached(s.ctx, s.cfg.EndTimeout)
	defer cancel()
	fail.Point("guard/before-resolve")
	outcome, cause := s.tx.Resolve(ctx)
	fail.Point("guard/resolved")
	switch {
	case outcome == dbtx.Committed:
		return ending{outcome: notify.OutcomeCommitted}
	case outcome == dbtx.NotCommitted && !s.claims.passed(ctx):
		return ending{err: fmt.Errorf("guard: the commit did not take effect: %w", ownLimitError{errors.Unwrap(err)}), outcome: notify.OutcomeRolledBack}
	}
	if cause == nil {
		cause = errPassed
	}
	return unknown(fmt.Errorf("%w: %w; %w", ErrUnknown, err, notLostError{cause}))
}

var errPassed = errors.New("another attempt may have had the request since")

func unknown(err error) ending { return ending{err: err, outcome: notify.OutcomeUnknown} }

// outrun returns the error of an attempt. If a cluster has rolled the last one back in favour of
// a transaction on another node, that one may be of the same request.
func (s *series) outrun(err error, atCommit bool) error {
	if !s.tx.SeveralWriters() || !s.budget.spent() || !dbtx.Retryable(err) {
		return err
	}
	return s.claims.outrun(s.ctx, s.tx, s.held, err, atCommit)
}
