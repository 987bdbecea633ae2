package guard

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// A callout is a Run of a Call. internal/model/call has its protocol. The flow of data:
//
//	lock of the request ─ look: belay_once (replay), belay_pending (busy, undecided, settle, take over)
//	transaction 1       ─ INSERT belay_pending; look at belay_once; Reserve; times
//	no transaction      ─ Do(id) → result
//	transaction 2       ─ INSERT belay_once; DELETE belay_pending by attempt; Settle(result); answer
//	if that fails       ─ UPDATE belay_pending SET result by attempt; a repeat settles
type callout struct {
	guard          *Guard
	request        once.Request
	opts           []Option
	name           string
	timeout, until time.Duration

	reserve func(ctx context.Context, tx *gorm.DB) error
	do      func(ctx context.Context, id string) (pending.Result, error)
	settle  func(ctx context.Context, tx *gorm.DB, result pending.Result) (any, error)
	refusal func(*refusedError) (any, error)
	take    func(*answering, options) error
	model   func() any

	options options
	db      sqldb.DB
	sum     []byte
	attempt int64           // that has the row, if it is this one or has a result
	begun   time.Time       // before the lease began
	read    time.Time       // before left was read
	left    time.Duration   // of Until: no call begins later
	open    *pending.State  // as it was read
	result  *pending.Result // that is to be settled
	stored  bool            // it is in the row
}

var errCall = errors.New("guard: invalid Call")

const (
	defaultTimeout = 30 * time.Second
	longestTimeout = 10 * time.Minute
)

// prepare checks what the caller has given.
func (o *callout) prepare(ctx context.Context) error {
	o.timeout = cmp.Or(o.timeout, defaultTimeout)
	for _, opt := range o.opts {
		opt(&o.options)
	}
	switch {
	case o.guard == nil:
		return fmt.Errorf("%w: guard is nil", errCall)
	case o.timeout < time.Millisecond || o.timeout > longestTimeout:
		return fmt.Errorf("%w: Timeout %v is outside 1ms to %v", errCall, o.timeout, longestTimeout)
	case o.until < o.timeout:
		return fmt.Errorf("%w: Until %v is less than Timeout %v: set it to less than the service remembers ids", errCall, o.until, o.timeout)
	case o.request.Operation != o.name:
		return fmt.Errorf("%w: Operation %q is not the Name %q of the Call", once.ErrRequest, o.request.Operation, o.name)
	case o.request.Print == (once.Print{}):
		return fmt.Errorf("%w: no Print: a repeat with other content would call with the same id", once.ErrRequest)
	case o.options.combine || o.options.requests != nil || o.options.protects != nil || o.options.remember != 0:
		return fmt.Errorf("%w: Combine, For, Protects and Remember are not for it", errCall)
	case dbtx.FromContext(ctx) != nil:
		return fmt.Errorf("%w: a Call makes transactions of its own", ErrNested)
	}
	if err := o.request.Validate(); err != nil {
		return err
	}
	pool, err := o.guard.db.DB()
	if err != nil {
		return err
	}
	d, _ := sqldb.Of(o.guard.db.Name())
	sum := sumOf(o.request)
	o.db, o.sum = sqldb.New(pool, d), sum[:]
	return nil
}

// run returns how the request was answered.
func (o *callout) run(ctx context.Context) (*answering, error) {
	if err := o.prepare(ctx); err != nil {
		return nil, err
	}
	if !o.guard.running.enter() {
		return nil, ErrClosed
	}
	defer o.guard.running.leave()
	a, err := o.serve(ctx)
	for errors.Is(err, errReturned) && o.attempt == 0 { // nothing is reserved
		a, err = o.serve(ctx)
	}
	return a, o.ended(err)
}

// serve serves the request under its lock. A result that is not settled then, since the lock was lost,
// is settled under a new lock, or stored: the lease of the row protects it.
func (o *callout) serve(ctx context.Context) (a *answering, err error) {
	settled := false
	defer func() {
		if !settled && o.result != nil { // Settle may have panicked, or ended its goroutine
			o.store(ctx)
		}
	}()
	h, err := o.guard.hold(ctx, o.request.Key(), o.options.wait)
	if err != nil {
		return nil, err
	}
	defer h.leave()
	a, err = o.under(ctx, h)
	if err = h.release(err); err != nil && o.result != nil {
		a, err = o.again(ctx, h, err)
	}
	if settled = err == nil; settled {
		h.outcome = notify.OutcomeCommitted
	}
	return a, err
}

// again settles a result that was not settled under the lock h, because of err: now, or by a repeat.
func (o *callout) again(ctx context.Context, h *holding, err error) (*answering, error) {
	if (!o.stored || errors.Is(err, errReturned)) && h.outcome != notify.OutcomeUnknown {
		var a *answering
		if a, err = o.finish(ctx, nil); err == nil {
			return a, nil
		}
		if a.conclusion.unknown() {
			h.outcome = notify.OutcomeUnknown
		}
	}
	return nil, &PendingError{Err: err}
}

// looks is how often the request is looked for again, after others were first.
const looks = 5

// under is what happens under the lock of the request.
func (o *callout) under(ctx context.Context, h *holding) (*answering, error) {
	held, cancel := h.within(ctx)
	defer cancel()
	keys := &h.run.keys
	for n := 1; o.attempt == 0; n++ {
		a, err := o.look(held, keys)
		if a != nil || err != nil {
			return a, err
		}
		if o.attempt != 0 {
			break
		}
		if a, err = o.reserved(held, h); a != nil && err == nil {
			return a, nil
		}
		switch {
		case errors.Is(err, errFirst) && n == looks:
			return nil, o.claiming().busy(errFirst)
		case err != nil && !errors.Is(err, errFirst):
			return nil, err
		}
	}
	if o.result == nil {
		if err := o.call(ctx); err != nil {
			return nil, o.returned(ctx, err)
		}
	}
	if keys.alive() != nil {
		return nil, errGone
	}
	a, err := o.finish(held, h)
	if err == nil {
		return a, nil
	}
	if keys.alive() == nil && !errors.Is(err, errReturned) {
		o.store(ctx)
	}
	return nil, err
}

var (
	// errFirst is returned by a transaction if another process has, or had, the request.
	errFirst = errors.New("another process was first")
	// errGone is returned if the lock of the request was lost during the call, which went on.
	errGone = errors.New("guard: the lock is to be acquired again after the call")
	// errLate is the cause of a request that is pending since nobody has called for it in time.
	errLate = errors.New("the time for the call has nearly passed before it began")
)

// lease is how long nobody else calls: the time of a call, and twice what a COMMIT and the question
// for its outcome may take.
func (o *callout) lease() time.Duration { return o.timeout + o.slack() }

func (o *callout) slack() time.Duration { return 4 * o.guard.cfg.EndTimeout }

// late reports whether a call that begins now may last longer than the lease, or begins behind Until.
// The host may have been suspended since.
func (o *callout) late() bool {
	clock := &o.guard.clock
	return clock.Since(o.begun) > o.slack() || clock.Since(o.read) >= o.left
}

// call makes the call, whose context does not end with the lock. The time for it begins before it is known
// that there is enough: the process may be paused between the two.
func (o *callout) call(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := o.guard.clock.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.late() {
		return errLate
	}
	fail.Point("guard/before-call")
	result, err := o.do(ctx, o.request.Downstream(o.name))
	fail.Point("guard/called")
	if err == nil {
		o.result = &result
		return nil
	}
	if ctx.Err() != nil {
		return overtimeError{err}
	}
	return err
}

// overtimeError is the error of a call whose context has ended: the other service may still work on it.
type overtimeError struct{ error }

func (e overtimeError) Unwrap() error { return e.error }

// returned is the end of a call that has failed. Unless the other service may still work on it, it
// ends the lease, so that a repeat calls at once.
func (o *callout) returned(ctx context.Context, err error) error {
	if _, over := errors.AsType[overtimeError](err); !over {
		ctx, cancel := detached(ctx, o.guard.cfg.EndTimeout)
		defer cancel()
		if failed := pending.GiveBack(ctx, o.db, o.sum, o.attempt); failed != nil && !errors.Is(failed, pending.ErrTaken) {
			o.guard.cfg.Logger.Warn("give a pending call back", "request", o.request.Key(), "error", failed)
		}
		fail.Point("guard/given-back")
	}
	return &PendingError{Err: o.claiming().own(err)}
}

const (
	// stores is how often a result is stored without a pause: a connection may be a broken one of the pool.
	stores = 3
	// storePause is the time between two tries to store a result behind those.
	storePause = 100 * time.Millisecond
)

// store stores a result that could not be settled. Without it a repeat calls again, with the same id: a
// database that is away is tried for as long as there is time.
func (o *callout) store(ctx context.Context) {
	ctx, cancel := detached(ctx, o.guard.cfg.EndTimeout)
	defer cancel()
	var err error
	for n := 1; !o.stored; n++ {
		err = pending.Store(ctx, o.db, o.sum, o.attempt, *o.result)
		if errors.Is(err, pending.ErrTaken) {
			err = o.taken(ctx, err)
		}
		o.stored = err == nil // or another attempt or COMMIT 2 has the row
		if !o.stored && n >= stores && wait.Sleep(ctx, storePause, nil) != nil {
			break
		}
	}
	if !o.stored {
		o.guard.cfg.Logger.Error("the result of a call could not be stored: a repeat calls again, with the same id",
			"request", o.request.Key(), "error", err)
	}
	fail.Point("guard/result-stored")
}

// taken returns nil if another attempt or COMMIT 2 has the row, and lacking if this attempt still has it,
// without a result: a node that is behind has not found it.
func (o *callout) taken(ctx context.Context, lacking error) error {
	ctx, cancel := context.WithTimeout(ctx, o.guard.cfg.EndTimeout)
	defer cancel()
	awaits := false
	err := dbtx.Visit(ctx, o.guard.db, func(v *dbtx.Visitor) error {
		return v.Read(ctx, func(c *sql.Conn) (err error) {
			awaits, err = pending.Awaits(ctx, c, o.db.Dialect, o.sum, o.attempt)
			return err
		})
	})
	switch {
	case errors.Is(err, dbtx.ErrNoServer): // SQLite has no nodes, and of a server that resembles others none is known
		return nil
	case err == nil && awaits:
		return lacking
	}
	return err
}

// finish settles the result, in transaction 2: under the lock h, or under one of its own if that is nil. It
// tries once more if the node that it was on had not applied the reservation yet.
func (o *callout) finish(ctx context.Context, h *holding) (*answering, error) {
	a, err := o.settled(ctx, h)
	if errors.Is(err, pending.ErrTaken) && errors.Is(o.taken(ctx, err), pending.ErrTaken) {
		a, err = o.settled(ctx, h)
	}
	if errors.Is(err, pending.ErrTaken) {
		o.guard.metrics.calls.WithLabelValues(callOvertaken).Inc()
	}
	return a, err
}

func (o *callout) settled(ctx context.Context, h *holding) (*answering, error) {
	a := o.answering(h, func(ctx context.Context, tx *gorm.DB) (any, bool, error) {
		if err := o.beside(ctx, func(ctx context.Context, q dbtx.Execer, d sqldb.Dialect) error {
			return pending.Settle(ctx, q, d, o.sum, o.attempt)
		}); err != nil {
			return nil, false, err
		}
		fail.Point("guard/unpended")
		v, err := o.settle(ctx, tx, *o.result)
		if _, refused := errors.AsType[*refusedError](err); refused {
			err = fmt.Errorf("%w: Settle cannot refuse: the other service has acted", errCall)
		}
		return v, false, err
	})
	defer func() { h.settledBy(a.conclusion) }()
	return a, a.call(ctx)
}

// answering returns the Once that stores the answer of the request, under the lock h if that is not nil.
func (o *callout) answering(h *holding, run func(ctx context.Context, tx *gorm.DB) (any, bool, error)) *answering {
	a := &answering{guard: o.guard, request: o.request, opts: o.opts, model: o.model(), run: run, inside: true, outer: h.keys()}
	a.take = func(opts options) error { return o.take(a, opts) }
	return a
}

// ended counts how a Run has ended, and adds to the error what is known of the row.
func (o *callout) ended(err error) error {
	result := callSettled
	if p, ok := errors.AsType[*PendingError](err); ok {
		result = callPending
		if s := o.open; s != nil {
			p.Since, p.Until, p.Tries = s.Since, s.Last, s.Tries
		}
		if p.Undecided {
			result = callUndecided
			o.guard.cfg.Logger.Error("the outcome of a call is undecided: ask the other service", "request", o.request.Key(), "since", p.Since, "until", p.Until)
		}
	} else if err != nil {
		result = callFailed
	}
	o.guard.metrics.calls.WithLabelValues(result).Inc()
	return err
}
