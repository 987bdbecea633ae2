package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/requestkey"
	"github.com/belaygo/belay/internal/rowversion"
)

// look finds the answer, or what is pending, and takes that over. It returns neither an answer nor an
// error if the request is to be made, or goes on: then it has set attempt, and perhaps result.
func (o *callout) look(held context.Context, keys *keySet) (*answering, error) {
	record, err := o.record(held)
	if err != nil {
		return nil, err
	}
	if record != nil {
		return o.replay(record)
	}
	ctx, cancel := context.WithTimeout(held, o.guard.records().timeout)
	defer cancel()
	o.read = time.Now()
	o.open, err = pending.Find(ctx, o.db, o.sum)
	s := o.open
	switch {
	case err != nil:
		return nil, fmt.Errorf("guard: %w", err)
	case s == nil:
		return nil, nil
	case o.request.Print.Differs(s.Print):
		return nil, fmt.Errorf("%w: its call is pending", ErrMismatch)
	case s.Result != nil:
		o.attempt, o.result, o.stored = s.Attempt, s.Result, true
		return nil, nil
	case s.Lease > 0:
		return nil, o.claiming().busy(errors.New("a process may be calling"))
	case s.Until <= 0:
		o.guard.calls.report(held, pending.Listed{Request: o.sum, Operation: o.request.Operation, Since: s.Since, Last: s.Last, Tries: s.Tries})
		return nil, &PendingError{Undecided: true}
	case keys.without() != nil:
		return nil, fmt.Errorf("%w: the call of another process is not taken over without the lock: %w", ErrUnavailable, keys.without())
	}
	mine := int64(rowversion.RandomStamp())
	o.begun, o.left = time.Now(), s.Until
	err = pending.TakeOver(ctx, o.db, o.sum, s.Attempt, mine, o.lease())
	switch {
	case errors.Is(err, pending.ErrTaken):
		return nil, o.claiming().busy(err)
	case err != nil:
		return nil, &PendingError{Err: err}
	}
	fail.Point("guard/taken-over")
	o.attempt = mine
	o.open.Tries++
	return nil, nil
}

// record returns what is known of the request, nil if it is not done.
func (o *callout) record(ctx context.Context) (*claim.Record, error) {
	k := o.claiming()
	ctx, cancel := context.WithTimeout(ctx, k.records.timeout)
	defer cancel()
	if err := k.read(ctx); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return k.record, nil
}

// replay takes the answer of a request that is done.
func (o *callout) replay(record *claim.Record) (*answering, error) {
	k := o.claiming()
	k.record = record
	a := o.answering(nil, nil)
	err := a.replay(k, o.options, k.repeated(errServed))
	return a, err
}

func (o *callout) claiming() *claiming {
	return &claiming{records: o.guard.records(), request: o.request, sum: [32]byte(o.sum), key: requestkey.OfSum(o.name, [32]byte(o.sum)), answers: true}
}
