package promises_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

// TestRowOfAnotherKey: an operation protects two rows by the key of the first, and
// somebody else writes the second one under its own key. Both have their locks from
// the beginning to the end: no lock has failed.
func TestRowOfAnotherKey(t *testing.T) {
	takeOne := func(ctx context.Context, tx *gorm.DB) error { return guard.Update(&Stock{ID: 1}, take).Run(ctx, tx) }
	takeTwo := func() guard.Op { return guard.Update(&Stock{ID: 2}, take).Run }
	insert := func() guard.Op { return guard.Insert(&Order{No: "a"}).Run }
	both := guard.Protects(&Stock{ID: 1}, &Stock{ID: 2})
	for name, tt := range map[string]struct {
		other string // key of the second row
		write func() guard.Op
		opts  []guard.Option
	}{
		"update":            {"wallet:2", takeTwo, []guard.Option{both}},
		"update, not named": {"wallet:2", takeTwo, nil},
		"insert":            {"order:a", insert, []guard.Option{guard.Protects(&Stock{ID: 1}, &Order{No: "a"})}},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(e *env) {
				e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
				payer := e.Peer(e.t, e.open())
				err := e.Do(bg, "wallet:1", func(ctx context.Context, tx *gorm.DB) error {
					if err := takeOne(ctx, tx); err != nil {
						return err
					}
					if _, ok := errors.AsType[*dbguard.ConflictError](tx.Take(&Stock{}, 2).Error); ok {
						e.t.Error("a conflict before anything happened")
					}
					if err := payer.Do(bg, tt.other, tt.write()); err != nil {
						return errors.Join(errors.New("the other writer"), err)
					}
					return tt.write()(ctx, tx)
				}, tt.opts...)
				e.wantNoEvent()
				if err != nil { // at READ COMMITTED an update finds the new row
					e.wantChanged(err)
				}
				if _, judged := errors.AsType[*dbguard.ConflictError](err); judged {
					wantIs(e.t, err, guard.ErrBusy)
				}
			})
		})
	}
}

// TestRowUnderTwoKeys: that is worth a warning, but one.
func TestRowUnderTwoKeys(t *testing.T) {
	each(t, func(e *env) {
		var log bytes.Buffer
		locker, err := lock.New(e.Engine(), lock.Config{})
		wantNil(e.t, err)
		defer locker.Close(bg)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		wantNil(e.t, err)
		e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
		for _, key := range []string{"wallet:1", "wallet:1", "account:1", "wallet:1"} {
			wantNil(e.t, g.Apply(bg, key, guard.Update(&Stock{ID: 1}, take)))
		}
		wantNil(e.t, g.Apply(bg, "wallet:2", guard.Update(&Stock{ID: 2}, take)))
		if n := strings.Count(log.String(), "several keys"); n != 1 || !strings.Contains(log.String(), "account:1") {
			e.t.Errorf("%d warnings, want one: %s", n, log.String())
		}
	})
}
