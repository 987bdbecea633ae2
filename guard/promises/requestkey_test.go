package promises_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/conflict"
)

// TestNestedUnderTheKeyOfARequest: that key protects no rows, as other requests may write them.
func TestNestedUnderTheKeyOfARequest(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		serve := func(id string, between func()) error {
			r := request(id)
			_, err := guard.Once(bg, e.Guard.Guard, r, func(ctx context.Context, _ *gorm.DB) (int, error) {
				return 1, e.Apply(ctx, r.Key(), guard.Update(&Stock{ID: 1}, func(s *Stock) error {
					between()
					s.Left--
					return nil
				}))
			})
			return err
		}
		between := func() {}
		if e.db.Name() != "sqlite" {
			between = func() { wantNil(e.t, serve("b", func() {})) }
		}
		err := serve("a", between)
		if refused, ok := errors.AsType[*dbguard.ConflictError](err); e.db.Name() != "sqlite" && (!ok || refused.Subject != conflict.OtherRow || guard.ResultOf(err) != "conflict") {
			e.t.Errorf("error is %v, result %s, want a conflict on a row that no key protects", err, guard.ResultOf(err))
		}
		e.wantNoEvent()
	})
}

// TestRowsUnderTheKeyOfARequest: they are refused, however they are named.
func TestRowsUnderTheKeyOfARequest(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		r, row := request("a"), &Order{No: "a"}
		nest := func(opts ...guard.Option) guard.Op {
			return func(ctx context.Context, _ *gorm.DB) error { return e.Do(ctx, r.Key(), e.never(), opts...) }
		}
		for name, err := range map[string]error{
			"Protects":        e.Do(bg, r.Key(), e.never(), guard.For(r), guard.Protects(row)),
			"Also":            e.Do(bg, "k", e.never(), guard.For(r), guard.Also(r.Key(), row)),
			"Also, its key":   e.Do(bg, r.Key(), e.never(), guard.For(r), guard.Also(r.Key(), row)),
			"nested Protects": e.Do(bg, r.Key(), nest(guard.Protects(row)), guard.For(r)),
			"nested Also":     e.Do(bg, r.Key(), nest(guard.Also(r.Key(), row)), guard.For(r)),
		} {
			if err == nil || !strings.Contains(err.Error(), "the key of a request") {
				e.t.Errorf("%s: error is %v, want one of a row under the key of a request", name, err)
			}
		}
	})
}
