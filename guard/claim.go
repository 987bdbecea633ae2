package guard

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/requestkey"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/once"
)

// records are the requests that were served, as the database has them.
type records struct {
	db      *gorm.DB
	timeout time.Duration // of a read
}

// claiming is what a call claims: the request that it serves.
type claiming struct {
	records records
	request once.Request
	sum     [sha256.Size]byte
	key     string
	held    int64 // of the call's keys, or of the request's own
	answers bool  // a repeat gets the answer, that of a refusal, too

	made   *claim.Claim  // in the last attempt
	record *claim.Record // what refused the claim, nil if it was gone when it was read
	err    error         // why it could not be read
}

// newClaiming prepares the claim of a call, nil if it makes none.
func newClaiming(requests []once.Request, in records) (*claiming, error) {
	switch len(requests) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("%w: one operation serves one", once.ErrRequest)
	}
	r := requests[0]
	if err := r.Validate(); err != nil {
		return nil, err
	}
	sum := sumOf(r)
	return &claiming{records: in, request: r, sum: sum, key: requestkey.OfSum(r.Operation, sum)}, nil
}

// hold notes the keys of the call, which are in order. The request's own excludes all
// who have it, whatever else they hold.
func (k *claiming) hold(p *plan) {
	own := p.find(k.key) != nil
	named := make([]byte, 0, 512) // most often on the stack
	for i := range p.keys {
		one := &p.keys[i]
		if own && !one.request {
			continue
		}
		named = append(append(strconv.AppendInt(named, int64(len(one.key)), 10), ' '), one.key...)
	}
	sum := sha256.Sum256(named)
	k.held = int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any 64 bits do
}

// lockKey returns the key of the request's own lock, "" if there is no request.
func (k *claiming) lockKey() string {
	if k == nil {
		return ""
	}
	return k.key
}

// claim inserts the claim: whoever comes with the same request from now on waits for the
// end of this transaction.
func (k *claiming) claim(t *dbtx.Tx, h held) error {
	k.made = k.row()
	err := t.Claim(k.key, k.made, h.patience())
	switch {
	case err == nil:
		database := k.records.db.Name()
		t.AroundRoutines(k.suspend(database), k.resume(database))
		fail.Point("guard/claimed")
	case errors.Is(err, dbtx.ErrClaimed):
		return k.busy(err)
	}
	return claim.Explain(err)
}

// keep implements claims.
func (k *claiming) keep(c *canary, t *dbtx.Tx) { c.keep(t, k.made) }

// suspend and resume mark the claim while a statement runs that may commit it before the
// operation has ended.
func (k *claiming) suspend(database string) func(context.Context, *sql.Conn) error {
	return func(ctx context.Context, conn *sql.Conn) error { return claim.Suspend(ctx, conn, database, k.sum[:]) }
}

func (k *claiming) resume(database string) func(context.Context, *sql.Conn) error {
	return func(ctx context.Context, conn *sql.Conn) error {
		return claim.Resume(ctx, conn, database, k.sum[:], k.request.Print.Bytes())
	}
}

// claim returns the row that says that the request has taken effect.
func (k *claiming) row() *claim.Claim {
	return &claim.Claim{Request: k.sum[:], Print: k.request.Print.Bytes(), Held: k.held, Operation: k.request.Operation}
}

// errServed is the cause of a repeat's error that needed no transaction of its own.
var errServed = errors.New("its transaction was committed before")

// served returns the error of a repeat, nil if the request is not known.
func (k *claiming) served(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.records.timeout)
	defer cancel()
	if err := k.read(ctx); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	if k.record == nil {
		return nil
	}
	return k.repeated(errServed)
}

// busy returns the error of a request that another transaction has, or had until now.
func (k *claiming) busy(cause error) error {
	held := &lockengine.HeldError{Key: k.key, Holder: lockengine.Holder{Place: lockengine.Place{Slot: -1}}}
	return fmt.Errorf("%w: %w: %w", ErrBusy, held, cause)
}

// find reads what is known of the request, also if ctx has ended.
func (k *claiming) find(ctx context.Context) error {
	ctx, cancel := detached(ctx, k.records.timeout)
	defer cancel()
	return k.read(ctx)
}

func (k *claiming) read(ctx context.Context) error {
	db := k.records.db
	pool, err := db.DB()
	if err != nil {
		return err
	}
	k.record, err = claim.Find(ctx, pool, db.Name(), k.sum[:])
	return err
}

// marked returns the error of a request whose key is marked as done, nil if it is not known.
func (k *claiming) marked(ctx context.Context) error {
	if err := k.find(ctx); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	if k.record != nil {
		return k.repeated(lockengine.ErrMarked)
	}
	return nil
}

// repeated returns the error of a repeat.
func (k *claiming) repeated(cause error) error {
	if k.err != nil {
		return fmt.Errorf("guard: %w", k.err)
	}
	switch {
	case k.record == nil: // it was purged, again and again
		return k.busy(cause)
	case k.record.Suspended():
		return fmt.Errorf("%w: %w: a routine has ended that of the request: %w", ErrUnknown, ErrTxControl, cause)
	case k.request.Print.Differs(k.record.Print):
		return fmt.Errorf("%w: %w", ErrMismatch, cause)
	case k.record.Refused() && !k.answers:
		return fmt.Errorf("%w: an operation of Once has refused it: %w", ErrMismatch, cause)
	}
	return fmt.Errorf("%w: %w", ErrDuplicate, cause)
}

// own returns an error of an operation as one that says nothing of the request, if there is
// one: it may be of another call that the operation has made.
func (k *claiming) own(err error) error {
	about := func(target error) bool { return errors.Is(err, target) }
	if k != nil && slices.ContainsFunc(ofRequest, about) {
		return ownError{err}
	}
	return err
}

// outrun finds out whether the transaction on another node was of the same request: a node
// learns of the claim at the COMMIT, or by a deadlock before it.
func (k *claiming) outrun(ctx context.Context, t *dbtx.Tx, h held, err error, atCommit bool) error {
	complete := atCommit && t.CatchUp()
	k.err = k.find(ctx)
	if atCommit && !complete {
		k.await(ctx, h)
	}
	switch {
	case k.err == nil && k.record != nil:
		return k.repeated(err)
	case complete && k.err == nil, !atCommit: // another row was in the way
		return err
	}
	return k.busy(err)
}

// await waits for a claim that has refused the COMMIT, perhaps, and is not here yet.
func (k *claiming) await(ctx context.Context, h held) {
	until := time.Now().Add(h.patience())
	for (k.err != nil || k.record == nil) && time.Now().Before(until) && h.alive() == nil {
		if wait.Sleep(ctx, claimPause, nil) != nil {
			return
		}
		k.err = k.find(ctx)
	}
}

// claimPause is the time between two reads of a claim that is on its way.
const claimPause = 20 * time.Millisecond

// claimTries is how often a claim is made again, before the operation has begun: when those
// who wait for a claim see it rolled back, the database lets one of them make it.
const claimTries = 10

// suspended reports whether the claim that is in the way was committed before its operation
// had ended.
func (k *claiming) suspended() bool { return k != nil && k.record.Suspended() }

// foreign reads the claim that is in the way, and reports whether it was made under other
// keys than the call's, or may have been: nobody knows that if it can't be read, or is gone.
func (k *claiming) foreign(ctx context.Context) bool {
	k.err = k.find(ctx)
	return k.record == nil || k.record.Held != k.held
}

// passed implements claims: a claim stays that of its attempt.
func (k *claiming) passed(context.Context) bool { return false }

// purged reports whether the claim that was in the way is gone.
func (k *claiming) purged() bool { return k.err == nil && k.record == nil }

// sumOf names a request in the tables: nothing else of the caller's is there.
func sumOf(r once.Request) [sha256.Size]byte { return requestkey.Sum(r.Operation, r.Scope, r.ID) }
