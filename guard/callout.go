package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/once"
)

// A Call is an operation with one call to another service in its middle, such as a payment: it
// reserves in a transaction, calls without one, and settles in another. No connection and no lock
// but that of the request is held while the other service works.
//
// Whatever fails, a repeat of the request goes on where the last one has stopped, and calls with the
// same id. So the other service must take an id with each call, and act once for it. A service that
// does not know ids may act twice. It must remember ids for Until and Timeout together.
//
// The table belay_pending must be there, beside those of package once: see once.MigrateCalls. A Call
// stores neither its input nor what Do sends. A repeat brings the input again, and its Print shows
// that it is the same one.
type Call[In, Out, Ans any] struct {
	// Name is the Operation of the requests. Give a Call that means something else, or sends other
	// bytes for the same input, another Name.
	Name string
	// Reserve takes what Settle needs, such as stock or a limit: others see that between the two. It
	// has all keys of Also. Refuse ends the request without a call. nil reserves nothing.
	Reserve func(ctx context.Context, tx *gorm.DB, in In) error
	// Do calls the other service with id, outside of transactions, and honours ctx. It may run
	// several times for a request, always with one id. Refuse means that the service has refused for
	// good, and takes no messages: Settle sends them. All other errors mean that nobody knows: return
	// Refuse for no timeout, no 409, no 429 and no 5xx. Results pass through JSON, and are stored if they
	// cannot be settled at once: keep them below 1 MiB.
	Do func(ctx context.Context, id string, in In) (Out, error)
	// Settle makes of the reservation what the outcome demands, and returns the answer, which says whether
	// Do has refused if the caller is to know. It has all keys of Also. It must not fail for reasons of
	// business: as long as it does, the request stays open, and the service is not called again. So let
	// Reserve insert a row that a unique index may refuse. Refuse is an error here.
	Settle func(ctx context.Context, tx *gorm.DB, in In, o Outcome[Out]) (Ans, error)
	// Timeout bounds one run of Do, and counts the time while the host is suspended. Defaults to 30 seconds,
	// and is 10 minutes at most. Keep it below the MaxHold of the Locker, or the loss of the lock is reported.
	Timeout time.Duration
	// Until is how long after Reserve a run of Do may begin, by the database's clock. It is
	// required, and at least Timeout: Until and Timeout together are less than the time for which the service
	// remembers an id, and less than once.PurgerConfig.Keep.
	Until time.Duration
}

// An Outcome is what the other service has answered.
type Outcome[Out any] struct {
	Value   Out
	Refused bool // Do has returned Value by Refuse
}

// ErrPending is returned by Call.Run while the outcome of a request is open: the other service may have
// been called. The error is a *PendingError. Repeat the request, with the same content.
var ErrPending = errors.New("guard: the outcome of the call is not known yet: repeat the request")

// A PendingError reports a request whose outcome is open. It matches ErrPending, and its cause, but no
// ErrDuplicate, ErrExists or ErrMismatch that Do has returned: that is of another call.
type PendingError struct {
	Since, Until time.Time // of the reservation, and when the last call may begin; zero if they were not read
	Tries        int       // calls that may have begun; 0 if that was not read
	// Undecided is set when no call may begin any more, and no result is known. Belay does nothing
	// more about the request: a person has to ask the other service. once.Open lists it, and
	// the command belay-calls stores what the person found out.
	Undecided bool
	Err       error // why it is open, nil if it is undecided
}

func (e *PendingError) Error() string {
	if e.Undecided {
		return fmt.Sprintf("guard: the outcome of the call is undecided since %s: ask the other service, by the id of the call", e.Until.Format(time.RFC3339))
	}
	return fmt.Sprintf("%v: %v", ErrPending, e.Err)
}

// Is matches ErrPending.
func (e *PendingError) Is(target error) bool { return target == ErrPending }

// Unwrap returns the cause.
func (e *PendingError) Unwrap() error { return e.Err }

// Run serves a request: it reserves, calls and settles, or goes on where an earlier Run has stopped.
// A repeat of a settled request gets the stored answer, as with Once. Its Refused is that of Reserve alone: what
// Settle makes of a refusal by Do is an answer like others, so let its type tell the two apart. opts are those of
// Once; keys of Also are held in the transactions, and not while Do runs. The lock of the request is held all the
// time.
//
// The errors are those of Once, and
//   - ErrBusy while another process may be calling;
//   - ErrPending when the outcome is open, or undecided;
//   - ErrMismatch when the request was made with another Print of the same version. A Print is required.
//   - ErrUnavailable when a call of another process could be taken over, and there is no lock: see DBOnly.
//
// Run is not for the inside of an operation: ErrNested. A panic in Do leaves the request pending.
func (c Call[In, Out, Ans]) Run(ctx context.Context, g *Guard, r once.Request, in In, opts ...Option) (Answer[Ans], error) {
	var none, got Answer[Ans]
	if c.Do == nil || c.Settle == nil {
		return none, fmt.Errorf("%w: Do and Settle are required", errCall)
	}
	o := &callout{guard: g, request: r, opts: opts, name: c.Name, timeout: c.Timeout, until: c.Until}
	o.model = func() any { return new(Ans) }
	o.reserve = func(ctx context.Context, tx *gorm.DB) error {
		if c.Reserve == nil {
			return nil
		}
		return c.Reserve(ctx, tx, in)
	}
	o.do = func(ctx context.Context, id string) (pending.Result, error) {
		v, err := c.Do(ctx, id, in)
		refusal, refused := errors.AsType[*refusedError](err)
		if refused && len(refusal.messages) > 0 {
			return pending.Result{}, fmt.Errorf("%w: Do sends no messages by Refuse: let Settle send them", errCall)
		}
		if refused {
			if v, err = refusedAs[Out](refusal); ctx.Err() != nil {
				err = fmt.Errorf("a refusal behind the end of the call does not count: %w", context.Cause(ctx))
			}
		}
		if err != nil {
			return pending.Result{}, err
		}
		body, err := json.Marshal(v)
		if err != nil {
			return pending.Result{}, fmt.Errorf("%w: encode the result of Do: %w", ErrAnswer, err)
		}
		return pending.Result{Refused: refused, Body: body}, nil
	}
	o.settle = func(ctx context.Context, tx *gorm.DB, result pending.Result) (any, error) {
		out := Outcome[Out]{Refused: result.Refused}
		if err := json.Unmarshal(result.Body, &out.Value); err != nil {
			return nil, fmt.Errorf("%w: decode the result of Do: %w", ErrAnswer, err)
		}
		return c.Settle(ctx, tx, in, out)
	}
	o.take = func(a *answering, opts options) error {
		var v Ans
		if err := a.decode(opts, &v); err != nil {
			return err
		}
		got.Value = v
		return nil
	}
	o.refusal = func(err *refusedError) (any, error) { return refusedAs[Ans](err) }
	a, err := o.run(ctx)
	if err != nil {
		return none, err
	}
	got.Replayed, got.Refused = a.replayed, a.answer.Refused
	return got, nil
}

// refusedAs returns the answer of a Refuse.
func refusedAs[T any](refusal *refusedError) (T, error) {
	v, ok := refusal.answer.(T)
	if !ok && refusal.answer != nil {
		return v, fmt.Errorf("%w: Refuse has a %T, not a %T", ErrAnswer, refusal.answer, v)
	}
	return v, nil
}
