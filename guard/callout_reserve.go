package guard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
)

// A reserving is the claims of transaction 1: the row of belay_pending in place of a claim. Its
// stamp proves the COMMIT.
type reserving struct {
	noClaims

	o   *callout
	row *pending.Row // in the last attempt
}

// claim implements claims. Behind the INSERT nobody can settle the request, so that a look at
// belay_once is of what stays.
func (r *reserving) claim(t *dbtx.Tx, h held) error {
	o := r.o
	r.row = &pending.Row{Request: o.sum, Print: o.request.Print.Bytes(), Operation: o.request.Operation}
	err := t.Claim(o.request.Key(), r.row, h.patience())
	switch {
	case errors.Is(err, dbtx.ErrClaimed):
		return o.claiming().busy(err)
	case err != nil:
		return pending.Explain(err)
	}
	fail.Point("guard/pending")
	return o.vacant(t.Context(), "belay_once", r.row)
}

// passed implements claims. Behind the lease another process may have taken the row over, and settled it:
// then the row, or the claim that is inserted when that is deleted, is there. A node that is behind, or takes
// no writes, shows neither: what it lacks proves nothing.
func (r *reserving) passed(ctx context.Context) bool {
	o := r.o
	if o.guard.clock.Since(o.begun) < o.lease() {
		return false
	}
	known := true
	err := dbtx.Visit(ctx, o.guard.db, func(v *dbtx.Visitor) error {
		return v.Read(ctx, func(c *sql.Conn) (err error) {
			known, err = o.known(ctx, c)
			return err
		})
	})
	return err != nil || known
}

// known reports whether a table has the request. A settlement deletes the row of the first with the INSERT
// into the second.
func (o *callout) known(ctx context.Context, c *sql.Conn) (bool, error) {
	if known, err := pending.Has(ctx, c, o.db.Dialect, o.sum); err != nil || known {
		return known, err
	}
	claims, err := claim.Attempts(ctx, c, o.db.Name, [][]byte{o.sum})
	return len(claims) > 0, err
}

// vacant returns ErrDuplicate if a table has the request.
func (o *callout) vacant(ctx context.Context, table string, row *pending.Row) error {
	err := o.beside(ctx, func(ctx context.Context, q dbtx.Execer, d sqldb.Dialect) error {
		return pending.Vacant(ctx, q, d, table, row)
	})
	if dialect.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", errFirst, err)
	}
	return err
}

// beside runs a statement of Belay in the operation that ctx comes from.
func (o *callout) beside(ctx context.Context, f func(ctx context.Context, q dbtx.Execer, d sqldb.Dialect) error) error {
	return dbtx.FromContext(ctx).Beside(func(ctx context.Context, conn dbtx.Execer, _ string) error {
		return f(ctx, conn, o.db.Dialect)
	})
}

// reserved makes the reservation, in transaction 1. It returns an answer if Reserve refuses.
func (o *callout) reserved(held context.Context, h *holding) (*answering, error) {
	r := &reserving{o: o}
	var refusal *refusedError
	op := func(ctx context.Context, tx *gorm.DB) error {
		refusal = nil
		if err := o.reserve(ctx, tx); err != nil {
			refusal, _ = errors.AsType[*refusedError](err)
			return o.claiming().own(err)
		}
		o.begun = time.Now()
		return o.beside(ctx, func(ctx context.Context, q dbtx.Execer, d sqldb.Dialect) error {
			return pending.Start(ctx, q, d, o.sum, o.lease(), o.until)
		})
	}
	c := &call{guard: o.guard, plan: plan{main: o.request.Key()}, work: work{op: op}, reserves: r, inside: true, outer: h.keys()}
	defer func() { h.learn(c.conclusion) }()
	err := o.guard.call(held, c, o.opts)
	conflict, _ := errors.AsType[*dbguard.ConflictError](err)
	switch {
	case onClaim(conflict) && (errors.Is(err, ErrDuplicate) || errors.Is(err, ErrStale)): // also by a row that the snapshot lacks
		return nil, fmt.Errorf("%w: %w", errFirst, err)
	case refusal != nil && !c.conclusion.failed:
		return o.refuse(held, h, refusal)
	case err != nil:
		return nil, err
	}
	o.attempt = int64(r.row.Attempt)
	o.read, o.left = o.begun, o.until
	o.open = &pending.State{Since: o.begun, Last: o.begun.Add(o.until), Tries: 1}
	return nil, nil
}

// refuse stores the refusal of Reserve, unless another has reserved meanwhile.
func (o *callout) refuse(held context.Context, h *holding, refusal *refusedError) (*answering, error) {
	var a *answering
	a = o.answering(h, func(ctx context.Context, _ *gorm.DB) (v any, _ bool, err error) {
		row := &pending.Row{Request: o.sum, Print: o.request.Print.Bytes(), Operation: o.request.Operation}
		if err := o.vacant(ctx, "belay_pending", row); err != nil {
			return nil, false, err
		}
		if v, err = o.refusal(refusal); err != nil {
			return nil, false, err
		}
		a.messages, err = messagesOf(ctx, refusal.messages)
		return v, true, err
	})
	defer func() { h.settledBy(a.conclusion) }()
	return a, a.call(held)
}
