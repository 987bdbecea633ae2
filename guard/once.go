package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/once"
)

// An Answer is what Once returns.
type Answer[T any] struct {
	Value    T
	Replayed bool // it was stored by an earlier call
	Refused  bool // the operation, or Reserve of a Call, has returned it by Refuse: nothing else took effect
}

// Once runs op for a request, and stores what it returns in the same transaction. Every
// repeat gets the stored answer, byte for byte, for as long as answers are kept, and
// ErrDuplicate for as long as the request is kept. A refusal is kept as long as its request. The
// first caller gets the answer as it was stored, too.
//
// An error of op, and a panic, rolls everything back and stores nothing: a repeat runs op.
// Refuse rolls back, but stores the answer. If a row that op inserts was there, the request has not
// taken effect: ErrExists, or a *dbguard.ConflictError for a row that no Also names.
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
		a.messages = nil
		v, err := op(ctx, tx)
		refusal, ok := errors.AsType[*refusedError](err)
		if !ok {
			return v, false, err
		}
		answer, ok := refusal.answer.(T)
		if !ok && refusal.answer != nil { // nil is the zero of an interface
			return nil, false, fmt.Errorf("%w: Refuse has a %T, the operation returns a %T", ErrAnswer, refusal.answer, v)
		}
		if a.messages, err = messagesOf(ctx, refusal.messages); err != nil {
			return nil, false, err
		}
		return answer, true, nil
	}
	if err := a.call(ctx); err != nil {
		return none, err
	}
	got.Replayed, got.Refused = a.replayed, a.answer.Refused
	return got, nil
}

// Refuse returns an error that makes Once roll back the operation but store answer, for
// example a declined payment. answer has the type that the operation returns. It is kept for as
// long as the request, so that no repeat is told that the payment was made.
//
// What the operation has sent is rolled back with its other effects. messages leave with the
// refusal: they are sent in the transaction that stores the answer, such as a mail about the
// declined payment.
func Refuse[T any](answer T, messages ...Message) error {
	own := make([]Message, len(messages))
	for i, m := range messages {
		own[i] = m.clone()
	}
	return &refusedError{answer, own}
}

type refusedError struct {
	answer   any
	messages []Message
}

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
	messages []message.Row // that leave with a refusal
	refusing bool          // the effects have been rolled back, the answer is to be stored
	replayed bool
	inside   bool    // a part of a Call: the first layer does not remember the request
	outer    *keySet // the lock of the Call, nil if there is none

	conclusion conclusion // of its run
}

// call runs the operation, or finds the answer.
func (a *answering) call(ctx context.Context) error {
	c := &call{guard: a.guard, plan: plan{main: a.request.Key()}}
	c.requests = []once.Request{a.request}
	c.inside, c.outer = a.inside, a.outer
	if !c.inside {
		c.remember = remembered
	}
	c.work = work{
		op:   func(ctx context.Context, _ *gorm.DB) error { return a.work(dbtx.FromContext(ctx), c.options) },
		anew: a.storesRefusal,
	}
	defer func() { a.conclusion = c.conclusion }()
	err := a.guard.call(ctx, c, a.opts)
	if k := c.request; err != nil && k != nil && k.err == nil && k.record != nil {
		return a.replay(k, c.options, err)
	}
	return err
}

// work runs the operation and stores its answer. A refusal is stored by another
// transaction, under the same lock, if this one has written something or can't go on.
func (a *answering) work(t *dbtx.Tx, o options) error {
	if !a.refusing {
		v, refused, err := a.run(t.Context(), t.DB())
		if err != nil {
			return err
		}
		if err := a.encode(o, v, refused); err != nil {
			return err
		}
		if err := a.take(o); err != nil { // before the COMMIT
			return err
		}
		unfit := t.Poisoned()
		if refused && (unfit != nil || !t.OnlyClaimed()) {
			return errStoreRefusal
		}
		if unfit != nil {
			return unfit
		}
	}
	if err := a.send(t); err != nil {
		return err
	}
	sum := sumOf(a.request)
	err := t.Beside(func(ctx context.Context, conn dbtx.Execer, database string) error {
		return claim.Insert(ctx, conn, database, sum[:], a.answer)
	})
	if err == nil {
		fail.Point("guard/answered")
	}
	return err
}

// send sends what leaves with a refusal.
func (a *answering) send(t *dbtx.Tx) error {
	if len(a.messages) == 0 {
		return nil
	}
	return t.Send(t.Context(), a.messages)
}

// messagesOf returns messages that leave with a refusal, as they are stored.
func messagesOf(ctx context.Context, messages []Message) ([]message.Row, error) {
	o, err := originOf(ctx)
	if err != nil {
		return nil, err
	}
	from := o.refused()
	rows, err := sendingOf(messages).rows(from)
	if err != nil {
		return nil, err
	}
	return rows, from.take(rows)
}

// errStoreRefusal has the transaction rolled back.
var errStoreRefusal = errors.New("guard: a refusal is not stored")

// storesRefusal reports whether to make an attempt that stores a refusal. Only the failure
// of a lock counts for more than what the operation has made of a conflict.
func (a *answering) storesRefusal(s *series) bool {
	e := s.last
	failed := e.finding != nil && e.finding.verdict.failure()
	if e.err != errStoreRefusal || failed || s.held.alive() != nil { //nolint:errorlint // of work itself
		return false
	}
	fail.Point("guard/refusing")
	a.refusing = true
	s.budget.stores() // the operation is not run again
	return true
}

// replay takes the answer of the claim that is in the way. What the call ended with, err,
// has been reported.
func (a *answering) replay(k *claiming, o options, err error) error {
	if k.record.Answer == nil || k.request.Print.Differs(k.record.Print) {
		return err
	}
	a.answer, a.replayed = *k.record.Answer, true
	return a.take(o)
}

func (a *answering) encode(o options, v any, refused bool) error {
	codec := o.codecFor(a.model)
	if err := codec.check(); err != nil {
		return err
	}
	body, err := codec.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w: encode: %w", ErrAnswer, err)
	}
	limit := o.maxBody
	if limit == 0 {
		limit = defaultBody
	}
	if len(body) > limit {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed: see MaxAnswer", ErrAnswer, len(body), limit)
	}
	a.answer.Refused, a.answer.Codec, a.answer.Body = refused, codec.Name, body
	return nil
}

// decode sets what v points to. An answer that is there is never made again.
func (a *answering) decode(o options, v any) error {
	codec := o.codecFor(v)
	if a.answer.Codec != codec.Name {
		return fmt.Errorf("%w: it is encoded as %q, not %q", ErrAnswer, a.answer.Codec, codec.Name)
	}
	if err := codec.Unmarshal(a.answer.Body, v); err != nil {
		return fmt.Errorf("%w: decode: %w", ErrAnswer, err)
	}
	return nil
}
