package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/once"
)

// For names the request that the operation serves. The request is stored in the
// operation's transaction, before the operation runs: see package once, whose tables must
// be there. A repeat returns ErrDuplicate, or ErrMismatch if it asks for something else or Once
// has refused the request, for as long as that is kept. It does so also after the lock has failed,
// and if it uses other keys: the operation never runs twice at once.
//
// If a row that the operation inserts was there, the request has not taken effect: ErrExists.
//
// A repeat that comes while the operation runs under other keys returns ErrBusy. With Wait
// it waits, for half of the lock's ttl at most.
//
// With Combine the key of Apply says who shares a transaction, and requests are stored
// after the changes were made in memory, before anything else is written: a change may be
// computed twice, and is written once. A caller whose request is there already, or comes
// twice, runs alone.
//
// After ErrUnknown, or any other error, the same request can be made again: it has taken
// effect at most once. On MySQL and MariaDB a procedure can commit the request before its
// operation has ended: see ErrTxControl. That request stays ErrUnknown.
//
// Do can be called with the Key of the request itself: then a repeat that comes while the
// operation runs is excluded by the lock. That key protects no rows: name those by Also.
func For(r once.Request) Option {
	return func(o *options) { o.requests = append(o.requests, r) }
}

// Served reports whether a request has taken effect and is known still. One that Once has refused
// has not. The error is ErrMismatch if that one asked for something else. It asks the database alone, in one
// short transaction; false says nothing about a moment later. It is not for the inside of
// an operation: ErrNested.
func (g *Guard) Served(ctx context.Context, r once.Request) (bool, error) {
	if err := errors.Join(r.Validate(), ctx.Err()); err != nil {
		return false, err
	}
	if dbtx.FromContext(ctx) != nil {
		return false, fmt.Errorf("%w: whether a request has been served", ErrNested)
	}
	k := &claiming{records: g.records(), request: r, sum: sumOf(r), key: r.Key(), answers: true}
	err := k.served(ctx)
	if errors.Is(err, ErrDuplicate) {
		return !k.record.Refused(), nil
	}
	return false, err
}

// records returns where the Guard reads the requests that were served.
func (g *Guard) records() records { return records{g.db, g.cfg.EndTimeout} }
