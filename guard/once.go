package guard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/once"
)

// ErrAnswer is returned when an answer can't be stored, as it can't be encoded or is too
// long, or when a stored one can't be decoded.
var ErrAnswer = errors.New("guard: answer can't be stored")

// An Answer is what Once returns.
type Answer[T any] struct {
	Value    T
	Replayed bool // it was stored by an earlier call
	Refused  bool // the operation has returned it by Refuse: nothing else took effect
}

// Once runs op for a request, and stores what it returns in the same transaction. Every
// repeat gets the stored answer, byte for byte, for as long as answers are kept, and
// ErrDuplicate for as long as the request is kept. The first caller gets the answer as it
// was stored, too.
//
// An error of op, and a panic, rolls everything back and stores nothing: a repeat runs op.
// Refuse rolls back, but stores the answer.
//
// Once acquires a lock of the request's own, so a repeat that comes while op runs gets
// ErrBusy, or waits, with Wait. Name what op changes by Also: rows that no Also names are
// not judged. Protects, Combine and For are not for Once, and Once is not for the inside of
// an operation. The first layer remembers a request for 10 minutes, or as Remember says.
func Once[T any](ctx context.Context, g *Guard, r once.Request, op func(ctx context.Context, tx *gorm.DB) (T, error), opts ...Option) (Answer[T], error) {
	var none, got Answer[T]
	if op == nil {
		return none, errNilOp
	}
	a := &answering{guard: g, request: r, opts: opts, model: &none.Value}
	a.take = func(o options) error {
		var v T
		if err := a.decode(o, &v); err != nil {
			return err
		}
		got.Value = v
		return nil
	}
	a.run = func(ctx context.Context, tx *gorm.DB) (any, bool, error) {
		v, err := op(ctx, tx)
		refusal, ok := errors.AsType[*refusedError](err)
		if !ok {
			return v, false, err
		}
		answer, ok := refusal.answer.(T)
		if !ok && refusal.answer != nil { // nil is the zero of an interface
			return nil, false, fmt.Errorf("%w: Refuse has a %T, the operation returns a %T", ErrAnswer, refusal.answer, v)
		}
		return answer, true, nil
	}
	if err := a.call(ctx); err != nil {
		return none, err
	}
	got.Replayed, got.Refused = a.replayed, a.answer.Refused
	return got, nil
}

// Refuse returns an error with which the operation of Once has what it wrote rolled back,
// but answer stored: a declined payment, for instance. answer has the type that the
// operation returns.
func Refuse[T any](answer T) error { return &refusedError{answer} }

type refusedError struct{ answer any }

// Error does not tell the answer, which may be of a person.
func (e *refusedError) Error() string { return "guard: Refuse outside of an operation of Once" }

// remembered is how long the first layer remembers a request: a hint, which saves a repeat
// the transaction.
const remembered = 10 * time.Minute

// answering is a Once.
type answering struct {
	guard   *Guard
	request once.Request
	opts    []Option
	run     func(ctx context.Context, tx *gorm.DB) (answer any, refused bool, err error)
	take    func(options) error // decodes answer for the caller
	model   any                 // a pointer to what it is decoded into

	answer   claim.Answer
	refusing bool // the effects have been rolled back, the answer is to be stored
	replayed bool
}

// call runs the operation, or finds the answer.
func (a *answering) call(ctx context.Context) error {
	c := a.begin()
	c.remember = remembered
	err := a.guard.call(ctx, c, a.opts)
	if errors.Is(err, lock.ErrMarked) && !c.claiming.begun { // it is the operation's own later
		// The mark is a hint: a database that was restored may not know the request.
		if found := c.claiming.find(ctx, a.guard); found != nil {
			return fmt.Errorf("guard: %w", found)
		}
		err = c.claiming.repeated(lock.ErrMarked)
		if c.claiming.record == nil {
			c = a.begin()
			err = a.guard.call(ctx, c, append(slices.Clip(a.opts), Remember(0)))
		}
	}
	if err == nil || c.claiming == nil || c.claiming.err != nil || c.claiming.record == nil {
		return err
	}
	return a.replay(c, err)
}

func (a *answering) begin() *call {
	a.refusing = false
	c := &call{guard: a.guard, key: a.request.Key(), once: a}
	c.requests = []once.Request{a.request}
	c.op = func(ctx context.Context, tx *gorm.DB) error { return a.work(ctx, tx, c) }
	return c
}

// work runs the operation and stores its answer. A refusal is stored by another
// transaction, under the same lock, if this one has written something or can't go on.
func (a *answering) work(ctx context.Context, tx *gorm.DB, c *call) error {
	if !a.refusing {
		v, refused, err := a.run(ctx, tx)
		if err != nil {
			return err
		}
		if err := a.encode(c.options, v, refused); err != nil {
			return err
		}
		if err := a.take(c.options); err != nil { // before the COMMIT
			return err
		}
		unfit := c.tx.Poisoned()
		if refused && (unfit != nil || !c.tx.OnlyClaimed()) {
			return errStoreRefusal
		}
		if unfit != nil {
			return unfit
		}
	}
	err := c.tx.Beside(func(ctx context.Context, conn *sql.Conn, database string) error {
		return claim.Insert(ctx, conn, database, c.claiming.sum[:], a.answer)
	})
	if err == nil {
		fail.Point("guard/answered")
	}
	return err
}

// errStoreRefusal has the transaction rolled back.
var errStoreRefusal = errors.New("guard: a refusal is not stored")

// storesRefusal reports whether to make an attempt that stores a refusal. Only the failure
// of a lock counts for more than what the operation has made of a conflict.
func (c *call) storesRefusal(e ending) bool {
	failed := e.finding != nil && e.finding.verdict.failure()
	if e.err != errStoreRefusal || failed || c.alive() != nil { //nolint:errorlint // of work itself
		return false
	}
	fail.Point("guard/refusing")
	c.once.refusing = true
	c.claiming.begun = false // nor is it run again
	return true
}

// replay takes the answer of the claim that is in the way. What the call ended with, err,
// has been reported.
func (a *answering) replay(c *call, err error) error {
	k := c.claiming
	if k.record.Answer == nil || k.request.Print.Differs(k.record.Print) {
		return err
	}
	a.answer, a.replayed = *k.record.Answer, true
	return a.take(c.options)
}
