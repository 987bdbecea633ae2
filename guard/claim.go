package guard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/once"
)

// ErrMismatch is returned for a repeat of a request that asks for something else than the
// request did: see once.Print.
var ErrMismatch = errors.New("guard: another request has this id")

// For names the request that the operation serves. The request is stored in the
// operation's transaction, before the operation runs: see package once, whose tables must
// be there. A repeat returns ErrDuplicate, or ErrMismatch if it asks for something else,
// for as long as the request is kept. It does so also after the lock has failed, and if it
// uses other keys: the operation never runs twice at once.
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
// effect at most once.
//
// Do can be called with the Key of the request itself: then a repeat that comes while the
// operation runs is excluded by the lock. That key protects no rows: name those by Also.
func For(r once.Request) Option {
	return func(o *options) { o.requests = append(o.requests, r) }
}

// Served reports whether a request has taken effect and is known still. The error is
// ErrMismatch if that one asked for something else. It asks the database alone, in one
// short transaction; false says nothing about a moment later. It is not for the inside of
// an operation: ErrNested.
func (g *Guard) Served(ctx context.Context, r once.Request) (bool, error) {
	if err := errors.Join(r.Validate(), ctx.Err()); err != nil {
		return false, err
	}
	if dbtx.FromContext(ctx) != nil {
		return false, fmt.Errorf("%w: whether a request has been served", ErrNested)
	}
	k := &claiming{request: r, sum: r.Sum(), key: r.Key()}
	err := k.served(ctx, g)
	if errors.Is(err, ErrDuplicate) {
		return true, nil
	}
	return false, err
}

// claiming is what a call claims: the request that it serves.
type claiming struct {
	request once.Request
	sum     [sha256.Size]byte
	key     string
	held    int64 // of the call's keys, or of the request's own
	begun   bool  // the operation, in some attempt

	record *claim.Record // what refused the claim, nil if it was gone when it was read
	err    error         // why it could not be read
}

// planClaim prepares the claim of a call.
func (c *call) planClaim() error {
	switch len(c.requests) {
	case 0:
		return nil
	case 1:
	default:
		return fmt.Errorf("%w: one operation serves one", once.ErrRequest)
	}
	r := c.requests[0]
	if err := r.Validate(); err != nil {
		return err
	}
	c.claiming = &claiming{request: r, sum: r.Sum(), key: r.Key()}
	return nil
}

// planHeld notes the keys of the call, which are in order. The request's own excludes all
// who have it, whatever else they hold.
func (c *call) planHeld() {
	if c.claiming == nil {
		return
	}
	h, own := sha256.New(), c.hold(c.claiming.key) != nil
	for i := range c.holds {
		if own && !c.isRequests(c.holds[i].key) {
			continue
		}
		_, _ = fmt.Fprintf(h, "%d %s", len(c.holds[i].key), c.holds[i].key)
	}
	c.claiming.held = int64(binary.BigEndian.Uint64(h.Sum(nil))) //nolint:gosec // any 64 bits do
}

// isRequests reports whether a key is that of the request which the call serves. It protects
// no rows but the claim: other requests may write the same ones.
func (c *call) isRequests(key string) bool { return c.claiming != nil && key == c.claiming.key }

// claim inserts the claim: whoever comes with the same request from now on waits for the
// end of this transaction.
func (c *call) claim() error {
	k := c.claiming
	err := c.tx.Claim(k.key, k.claim(), min(c.ttl()/2, time.Until(c.until)))
	switch {
	case err == nil:
		fail.Point("guard/claimed")
	case errors.Is(err, dbtx.ErrClaimed):
		return k.busy(err)
	}
	return err
}

// claim returns the row that says that the request has taken effect.
func (k *claiming) claim() *claim.Claim {
	return &claim.Claim{Request: k.sum[:], Print: k.request.Print.Bytes(), Held: k.held, Operation: k.request.Operation}
}

// errServed is the cause of a repeat's error that needed no transaction of its own.
var errServed = errors.New("its transaction was committed before")

// served returns the error of a repeat, nil if the request is not known.
func (k *claiming) served(ctx context.Context, g *Guard) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.EndTimeout)
	defer cancel()
	if err := k.read(ctx, g); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	if k.record == nil {
		return nil
	}
	return k.repeated(errServed)
}

// busy returns the error of a request that another transaction has, or had until now.
func (k *claiming) busy(cause error) error {
	held := &lock.HeldError{Key: k.key, Holder: lock.Holder{Place: lock.Place{Slot: -1}}}
	return fmt.Errorf("%w: %w: %w", ErrBusy, held, cause)
}

// find reads what is known of the request, also if ctx has ended.
func (k *claiming) find(ctx context.Context, g *Guard) error {
	ctx, cancel := detached(ctx, g.cfg.EndTimeout)
	defer cancel()
	return k.read(ctx, g)
}

func (k *claiming) read(ctx context.Context, g *Guard) error {
	pool, err := g.db.DB()
	if err != nil {
		return err
	}
	k.record, err = claim.Find(ctx, pool, g.db.Name(), k.sum[:])
	return err
}

// repeated returns the error of a repeat.
func (k *claiming) repeated(cause error) error {
	if k.err != nil {
		return fmt.Errorf("guard: %w", k.err)
	}
	switch {
	case k.record == nil: // it was purged, again and again
		return k.busy(cause)
	case k.request.Print.Differs(k.record.Print):
		return fmt.Errorf("%w: %w", ErrMismatch, cause)
	}
	return fmt.Errorf("%w: %w", ErrDuplicate, cause)
}

// claims reports whether a conflict is on the claim of the call.
func (c *call) claims(conflict *dbguard.ConflictError) bool {
	return c.claiming != nil && onClaim(conflict) && conflict.Key == c.claiming.key
}

// onClaim reports whether a conflict is on a claim.
func onClaim(conflict *dbguard.ConflictError) bool {
	return conflict != nil && conflict.Table == claim.Claim{}.TableName()
}

// foreign reports whether a conflict is on claims that were made under other keys than the
// call's.
func (c *call) foreign(conflict *dbguard.ConflictError) bool {
	if c.crew != nil {
		return onClaim(conflict) && c.crew.foreign()
	}
	return c.claims(conflict) && c.claiming.foreign(c.ctx, c.guard)
}

// foreign reads the claim that is in the way, and reports whether it was made under other
// keys than the call's, or may have been: nobody knows that if it can't be read, or is gone.
func (k *claiming) foreign(ctx context.Context, g *Guard) bool {
	k.err = k.find(ctx, g)
	return k.record == nil || k.record.Held != k.held
}

// claimedInVain reports whether the claim was refused for one that is gone: it was purged.
func (c *call) claimedInVain(e ending) bool {
	return e.finding != nil && c.claims(e.finding.conflict) && !e.finding.verdict.failure() &&
		c.claiming.err == nil && c.claiming.record == nil
}
