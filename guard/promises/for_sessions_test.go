package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// TestForInSessionsOfAllKinds: whatever the options of gorm are.
func TestForInSessionsOfAllKinds(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		for name, cfg := range map[string]*gorm.Config{
			"prepared":   {PrepareStmt: true},
			"translated": {TranslateError: true},
			"batches":    {CreateBatchSize: 10},
			"fields":     {QueryFields: true},
			"bare":       {SkipDefaultTransaction: true, DisableNestedTransaction: true},
		} {
			g := e.Peer(t, e.open(cfg))
			r := printed(name, "1")
			wantNil(t, g.Do(bg, "k", func(context.Context, *gorm.DB) error { return nil }, guard.For(r)))
			wantIs(t, g.Do(bg, "k", e.never(), guard.For(r)), guard.ErrDuplicate)
			wantIs(t, g.Do(bg, "j", e.never(), guard.For(r)), guard.ErrDuplicate)
			wantIs(t, g.Do(bg, "j", e.never(), guard.For(printed(name, "2"))), guard.ErrMismatch)
		}
		e.wantNoEvent()
	})
}

// TestOnceIsolations: the operation does not run twice, and the overlap is told, whatever
// the isolation of the sessions. Where reads wait for the first one, the second is refused.
func TestOnceIsolations(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 99})
		const locking = "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"
		settings := []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", locking, "SET innodb_snapshot_isolation = 1"}
		if e.db.Name() == "postgres" {
			settings = []string{"SET default_transaction_isolation = 'repeatable read'", "SET default_transaction_isolation = 'serializable'"}
		}
		for _, set := range settings {
			db, begins := e.claims()
			pool, err := db.DB()
			wantNil(t, err)
			pool.SetMaxOpenConns(1)
			if db.Exec(set).Error != nil { // an older server does not know it
				continue
			}
			e.overlapOnce(t, set, e.Peer(t, db), begins, set == locking)
		}
	})
}

// overlapOnce has peer repeat a request while it runs, after the locks were lost.
func (e *env) overlapOnce(t *testing.T, id string, peer *guard.Guard, begins <-chan struct{}, refused bool) {
	t.Helper()
	e.LoseAll(true)
	defer e.LoseAll(false)
	before := len(e.Events.All())
	second := make(chan error, 1)
	finish := started(func(rest func()) error {
		_, err := guard.Once(bg, e.Guard.Guard, request(id), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
			rest()
			return sells(1)(ctx, tx)
		})
		return err
	})
	go func() {
		got, err := guard.Once(bg, peer, request(id), e.neverSells(), guard.Wait(time.Minute))
		if err == nil && !got.Replayed {
			t.Errorf("%s: the second got %+v", id, got)
		}
		second <- err
	}()
	if refused {
		wantIs(t, <-second, guard.ErrBusy)
	} else {
		<-begins
	}
	wantNil(t, finish())
	if refused {
		return
	}
	wantNil(t, <-second)
	overlaps := slices.DeleteFunc(e.Events.All()[before:], func(ev notify.Event) bool { return ev.Verdict != notify.VerdictOverlap })
	if len(overlaps) != 1 {
		t.Errorf("%s: overlaps are %+v, want 1", id, overlaps)
	}
}

// TestManyForsUnderOtherKeys: of many that serve a request at once, each under a key of its
// own, one takes effect, however many fail before.
func TestManyForsUnderOtherKeys(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		var done, other atomic.Int64
		ends := make(chan error)
		const n = 12
		for i := range n {
			fails := i%3 == 0
			go func() {
				ends <- e.Do(bg, fmt.Sprint("sku:", i), func(ctx context.Context, tx *gorm.DB) error {
					err := takeOne(1)(ctx, tx)
					if fails {
						return errors.New("oops")
					}
					return err
				}, guard.For(request("a")), guard.Wait(20*time.Second))
			}()
		}
		for range n {
			switch err := <-ends; {
			case err == nil:
				done.Add(1)
			case errors.Is(err, guard.ErrDuplicate), err.Error() == "oops":
				other.Add(1)
			default:
				t.Log(err)
			}
		}
		if done.Load() != 1 || other.Load() != n-1 {
			t.Errorf("done %d, others %d", done.Load(), other.Load())
		}
		e.wantTaken(1)
		e.wantNoEvent()
	})
}
