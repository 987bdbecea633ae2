package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/once"
)

// insertReceipt inserts the order that two requests of these tests have in common.
func insertReceipt(ctx context.Context, tx *gorm.DB) error {
	return guard.Insert(&Order{No: "receipt"}).Run(ctx, tx)
}

// receiptKey has the key of that order protect it.
func receiptKey() guard.Option { return guard.Also("order:receipt", &Order{No: "receipt"}) }

// wantExists checks the error of a request whose operation met a row that was there.
func wantExists(t *testing.T, err error) {
	t.Helper()
	refused, ok := errors.AsType[*dbguard.ConflictError](err)
	switch {
	case !errors.Is(err, guard.ErrExists), errors.Is(err, guard.ErrDuplicate), guard.ResultOf(err) != "conflict":
		t.Errorf("error is %v, result %s, want ErrExists and nothing of the request", err, guard.ResultOf(err))
	case !ok, refused.Subject != conflict.ProtectedRow, refused.Table != "orders", refused.Key != "order:receipt":
		t.Errorf("the conflict is %+v, want one on the row of order:receipt", refused)
	}
}

// TestRowOfAnotherRequest: a request whose operation meets a row that was there has not been
// served, and its error does not say so. It can be served when the row is gone.
func TestRowOfAnotherRequest(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(e *env, r once.Request) error{
		"Once": func(e *env, r once.Request) error {
			_, err := guard.Once(bg, e.Guard.Guard, r, func(ctx context.Context, tx *gorm.DB) (int, error) {
				return 1, insertReceipt(ctx, tx)
			}, receiptKey())
			return err
		},
		"Once, nested": func(e *env, r once.Request) error {
			_, err := guard.Once(bg, e.Guard.Guard, r, func(ctx context.Context, tx *gorm.DB) (int, error) {
				return 1, e.Apply(ctx, "order:receipt", guard.Insert(&Order{No: "receipt"}))
			}, guard.Also("order:receipt"))
			return err
		},
		"For": func(e *env, r once.Request) error {
			return e.Do(bg, "order:receipt", insertReceipt, guard.For(r), guard.Protects(&Order{No: "receipt"}))
		},
		"For, under the request's key": func(e *env, r once.Request) error {
			return e.Do(bg, r.Key(), insertReceipt, guard.For(r), guard.Remember(time.Minute), receiptKey())
		},
		"For, remembered": func(e *env, r once.Request) error {
			return e.Do(bg, "order:receipt", insertReceipt, guard.For(r), guard.Remember(time.Minute), guard.Protects(&Order{No: "receipt"}))
		},
		"Combine": func(e *env, r once.Request) error {
			return e.Apply(bg, "order:receipt", guard.Insert(&Order{No: "receipt"}), guard.For(r), guard.Combine(), guard.Wait(time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withOnce(t, func(e *env) {
				wantNil(e.t, serve(e, request("first")))
				for range 2 {
					wantExists(e.t, serve(e, request("second")))
				}
				wantIs(e.t, serve(e, request("first")), map[bool]error{false: guard.ErrDuplicate}[strings.HasPrefix(name, "Once")])
				wantNil(e.t, e.db.Delete(&Order{}, "no = ?", "receipt").Error)
				wantNil(e.t, serve(e, request("second")))
				e.wantNoEvent()
			})
		})
	}
}

// TestRowsOfACrew: callers who share a transaction are told what one that runs alone is.
func TestRowsOfACrew(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9}, &Order{No: "no-1"})
		all := shoppers(3)

		e.sell(all...)
		for i, b := range all {
			if i == 1 {
				if !errors.Is(b.err, guard.ErrExists) || errors.Is(b.err, guard.ErrDuplicate) {
					e.t.Errorf("error is %v, want ErrExists", b.err)
				}
				continue
			}
			wantNil(e.t, b.err)
		}
		e.wantNoEvent()
	})
}

// TestOwnErrorsSayNothingOfTheRequest: what an operation returns of its own, such as the error of
// another call, is not taken for what is known of the request.
func TestOwnErrorsSayNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		for _, own := range []error{guard.ErrDuplicate, guard.ErrExists, guard.ErrMismatch, once.ErrRequest, lock.ErrInvalidKey} {
			own = fmt.Errorf("a call of another service: %w", own)
			op := func(context.Context, *gorm.DB) error { return own }
			_, err := guard.Once(bg, e.Guard.Guard, request("a"), func(ctx context.Context, tx *gorm.DB) (int, error) { return 0, op(ctx, tx) })
			for _, err := range []error{err, e.Do(bg, "k", op, guard.For(request("a")))} {
				if err == nil || err.Error() != own.Error() || errors.Is(err, errors.Unwrap(own)) || guard.ResultOf(err) != "failed" {
					e.t.Errorf("error is %v, result %s, want the operation's, which says nothing of its request", err, guard.ResultOf(err))
				}
			}
			wantIs(e.t, e.Do(bg, "k", op), errors.Unwrap(own)) // without a request its own words stand
		}
	})
}

// TestMarkIsOfTheRequest: what a request meets besides its own row is not remembered, not even for
// those who serve no request. They find the mark, and do not ask the table.
func TestMarkIsOfTheRequest(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		e.create(&Order{No: "receipt"})
		serve := func() error {
			return e.Do(bg, "order:receipt", insertReceipt, guard.For(request("a")), guard.Remember(time.Minute), guard.Protects(&Order{No: "receipt"}))
		}
		insert := func(key string) error {
			return e.Do(bg, key, insertReceipt, guard.Remember(time.Minute), guard.Protects(&Order{No: "receipt"}))
		}
		wantExists(e.t, serve())
		wantExists(e.t, serve())
		wantNil(e.t, e.db.Delete(&Order{}, "no = ?", "receipt").Error)
		if err := insert("order:receipt"); err != nil {
			e.t.Errorf("error is %v, and nothing was done: the first layer has remembered another's row", err)
		}
		// Without a request, the row is what the key names.
		wantIs(e.t, insert("order:again"), guard.ErrDuplicate)
		wantIs(e.t, insert("order:again"), lockengine.ErrMarked)
	})
}
