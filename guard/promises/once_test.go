package promises_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// receipt is an answer.
type receipt struct {
	Left int
	Note string `json:",omitempty"`
}

// sells returns an operation that takes one and answers how many are left.
func sells(id int64) func(context.Context, *gorm.DB) (receipt, error) {
	return func(ctx context.Context, tx *gorm.DB) (receipt, error) {
		s := Stock{ID: id}
		err := guard.Update(&s, func(s *Stock) error { s.Left--; return nil }).Run(ctx, tx)
		return receipt{Left: s.Left}, err
	}
}

// neverSells is an operation that must not run.
func (e *env) neverSells() func(context.Context, *gorm.DB) (receipt, error) {
	return func(context.Context, *gorm.DB) (receipt, error) {
		e.t.Error("the operation ran")
		return receipt{}, nil
	}
}

func wantAnswer(t *testing.T, got guard.Answer[receipt], err error, want guard.Answer[receipt]) {
	t.Helper()
	wantNil(t, err)
	if got != want {
		t.Errorf("the answer is %+v, want %+v", got, want)
	}
}

// TestOnce: every repeat gets the first answer, with the mark of the first layer and
// without it, on another instance, too.
func TestOnce(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		r := printed("a", "sku 1")
		got, err := guard.Once(bg, e.Guard.Guard, r, sells(1), guard.Also("sku:1", &Stock{ID: 1}))
		wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Left: 8}})
		peer := e.Peer(t, e.db)
		repeat := guard.Answer[receipt]{Value: receipt{Left: 8}, Replayed: true}
		got, err = guard.Once(bg, peer, r, e.neverSells(), guard.Also("sku:1", &Stock{ID: 1}))
		wantAnswer(t, got, err, repeat)
		got, err = guard.Once(bg, peer, r, e.neverSells(), guard.Remember(-1)) // no mark is asked for
		wantAnswer(t, got, err, repeat)
		got, err = guard.Once(bg, peer, r, e.neverSells(), guard.Remember(-1), guard.Also("sku:1"))
		wantAnswer(t, got, err, repeat)
		for _, mark := range []time.Duration{time.Minute, -1} {
			_, err = guard.Once(bg, peer, printed("a", "sku 2"), e.neverSells(), guard.Remember(mark))
			wantIs(t, err, guard.ErrMismatch)
		}
		e.wantTaken(1)
		e.wantNoEvent()
	})
}

// TestOnceFails: an error stores nothing, and a repeat runs.
func TestOnceFails(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		oops := errors.New("oops")
		_, err := guard.Once(bg, e.Guard.Guard, request("a"), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
			_, err := sells(1)(ctx, tx)
			return receipt{}, errors.Join(err, oops)
		})
		wantIs(t, err, oops)
		e.wantTaken(0)
		got, err := guard.Once(bg, e.Guard.Guard, request("a"), sells(1))
		wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Left: 8}})
	})
}

// TestRefuse: a refusal has no effect, and is answered again. It needs a second transaction
// only if something was written.
func TestRefuse(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		for name, op := range map[string]func(context.Context, *gorm.DB) (receipt, error){
			"writes": func(ctx context.Context, tx *gorm.DB) (receipt, error) {
				r, err := sells(1)(ctx, tx)
				r.Note = "declined"
				return receipt{}, errors.Join(err, guard.Refuse(r))
			},
			"only reads": func(_ context.Context, tx *gorm.DB) (receipt, error) {
				var s Stock
				err := tx.Take(&s, 1).Error
				return receipt{}, errors.Join(err, guard.Refuse(receipt{Left: s.Left - 1, Note: "declined"}))
			},
		} {
			want := guard.Answer[receipt]{Value: receipt{Left: 8, Note: "declined"}, Refused: true}
			got, err := guard.Once(bg, e.Guard.Guard, request(name), op)
			wantAnswer(t, got, err, want)
			want.Replayed = true
			got, err = guard.Once(bg, e.Guard.Guard, request(name), e.neverSells(), guard.Remember(-1))
			wantAnswer(t, got, err, want)
		}
		nothing, err := guard.Once(bg, e.Guard.Guard, request("nil"), func(context.Context, *gorm.DB) (any, error) {
			return nil, guard.Refuse[any](nil)
		})
		if err != nil || nothing.Value != nil || !nothing.Refused {
			t.Errorf("a refusal with nil is %+v, %v", nothing, err)
		}
		_, err = guard.Once(bg, e.Guard.Guard, request("type"), func(context.Context, *gorm.DB) (receipt, error) {
			return receipt{}, guard.Refuse("no receipt")
		})
		wantIs(t, err, guard.ErrAnswer)
		got, err := guard.Once(bg, e.Guard.Guard, request("type"), sells(1))
		wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Left: 8}})
		e.wantNoEvent()
	})
}

// TestRefuseTooLate: between the two transactions of a refusal another caller makes the
// request, as the lock is lost. That one's answer counts.
func TestRefuseTooLate(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9})
		r, other, claims := request("a"), e.open(), 0
		wantNil(t, other.Callback().Create().Before("*").Register("test:rival", func(db *gorm.DB) {
			if db.Statement.Table != "belay_once" {
				return
			}
			if claims++; claims == 2 {
				e.Forget(r.Key())
				got, err := guard.Once(bg, e.Guard.Guard, r, sells(1))
				wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Left: 8}})
			}
		}))
		got, err := guard.Once(bg, e.Peer(t, other), r, func(ctx context.Context, tx *gorm.DB) (receipt, error) {
			got, err := sells(1)(ctx, tx)
			return receipt{}, errors.Join(err, guard.Refuse(got))
		})
		wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Left: 8}, Replayed: true})
		if claims != 2 {
			t.Errorf("%d claims, want 2", claims)
		}
		e.wantTaken(1)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, r.Key())
	})
}

// TestOnceWhileItRuns: a repeat gets ErrBusy, or waits for the answer.
func TestOnceWhileItRuns(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		peer := e.Peer(t, e.db)
		finish := started(func(rest func()) error {
			_, err := guard.Once(bg, e.Guard.Guard, request("a"), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
				rest()
				return sells(1)(ctx, tx)
			})
			return err
		})
		_, err := guard.Once(bg, peer, request("a"), e.neverSells())
		wantIs(t, err, guard.ErrBusy)
		_, err = guard.Once(bg, peer, printed("a", "other content"), e.neverSells())
		wantIs(t, err, guard.ErrBusy)
		waits := make(chan guard.Answer[receipt])
		go func() {
			got, err := guard.Once(bg, peer, request("a"), e.neverSells(), guard.Wait(time.Minute))
			if err != nil {
				t.Error(err)
			}
			waits <- got
		}()
		wantNil(t, finish())
		wantAnswer(t, <-waits, nil, guard.Answer[receipt]{Value: receipt{Left: 8}, Replayed: true})
		e.wantTaken(1)
		e.wantNoEvent()
	})
}

// TestOnceAfterALostLock: the operation does not run twice, although both callers have the
// lock. The second gets the answer of the first, and the failure is reported, also if their
// other keys differ.
func TestOnceAfterALostLock(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9})
		claims, begins := e.claims()
		peer := e.Peer(t, claims)
		e.LoseAll(true)
		finish := started(func(rest func()) error {
			_, err := guard.Once(bg, e.Guard.Guard, request("a"), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
				rest()
				return sells(1)(ctx, tx)
			}, guard.Also("sku:1"))
			return err
		})
		second := make(chan guard.Answer[receipt])
		go func() {
			got, err := guard.Once(bg, peer, request("a"), e.neverSells(), guard.Wait(time.Minute), guard.Also("sku:2"))
			if err != nil {
				t.Error(err)
			}
			second <- got
		}()
		<-begins
		wantNil(t, finish())
		wantAnswer(t, <-second, nil, guard.Answer[receipt]{Value: receipt{Left: 8}, Replayed: true})
		e.wantTaken(1)
		overlaps := 0
		for _, ev := range e.Events.All() {
			if ev.Verdict == notify.VerdictOverlap {
				overlaps++
			}
		}
		if overlaps != 1 {
			t.Errorf("%d overlaps among %+v, want 1", overlaps, e.Events.All())
		}
	})
}

// TestOnceJudgesNoOtherRows: two requests may insert one row at once without any lock
// failure.
func TestOnceJudgesNoOtherRows(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		peer := e.Peer(t, e.db)
		_, err := guard.Once(bg, e.Guard.Guard, request("a"), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
			if e.db.Name() != "sqlite" {
				_, err := guard.Once(bg, peer, request("b"), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
					return receipt{}, guard.Insert(&Order{No: "n"}).Run(ctx, tx)
				})
				wantNil(t, err)
			}
			return receipt{}, guard.Insert(&Order{No: "n"}).Run(ctx, tx)
		})
		if conflict, ok := errors.AsType[*dbguard.ConflictError](err); e.db.Name() != "sqlite" && (!ok || conflict.Evidence.Protected) {
			t.Errorf("error is %v, want a conflict on a row that is not protected", err)
		}
		if errors.Is(err, guard.ErrIntercepted) || errors.Is(err, guard.ErrDuplicate) {
			t.Errorf("error is %v, which says something of the request", err)
		}
		e.wantNoEvent()
	})
}

// TestOnceForgotten: a mark without a request does not count, and a request without an
// answer is one that is done.
func TestOnceForgotten(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		_, err := guard.Once(bg, e.Guard.Guard, request("a"), sells(1))
		wantNil(t, err)
		wantNil(t, e.db.Exec("DELETE FROM belay_answer").Error)
		for _, mark := range []time.Duration{time.Minute, -1} {
			_, err = guard.Once(bg, e.Guard.Guard, request("a"), e.neverSells(), guard.Remember(mark))
			wantIs(t, err, guard.ErrDuplicate)
		}
		wantNil(t, e.db.Exec("DELETE FROM belay_once").Error) // as if the database had been restored
		_, err = guard.Once(bg, e.Guard.Guard, request("a"), sells(1))
		wantNil(t, err)
		e.wantTaken(2)
		e.wantNoEvent()
	})
}

// TestOnceManyTimes: 60 calls over three instances run the operation once.
func TestOnceManyTimes(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		pool, err := e.db.DB()
		wantNil(t, err)
		pool.SetMaxOpenConns(20) // 60 logins at once last longer than a busy server's time for one
		var ran atomic.Int64
		op := func(ctx context.Context, tx *gorm.DB) (receipt, error) {
			ran.Add(1)
			return sells(1)(ctx, tx)
		}
		got := make(chan guard.Answer[receipt])
		const each = 20
		for range 3 {
			g := e.Peer(t, e.db)
			for range each {
				go func() {
					a, err := guard.Once(bg, g, request("a"), op, guard.Wait(time.Minute))
					if err != nil {
						t.Error(err)
					}
					got <- a
				}()
			}
		}
		firsts := 0
		for range 3 * each {
			a := <-got
			if !a.Replayed {
				firsts++
			}
			if a.Value.Left != 8 {
				t.Errorf("answer is %+v", a)
			}
		}
		if n := ran.Load(); n != 1 || firsts != 1 {
			t.Errorf("the operation ran %d times, and %d got the answer as the first, want 1", n, firsts)
		}
		e.wantTaken(1)
		e.wantNoEvent()
	})
}

// TestAnswers: what comes back is what was stored.
func TestAnswers(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		g := e.Guard.Guard
		for name, body := range map[string][]byte{"nil": nil, "empty": {}, "binary": {0, 0xff, '\'', 0}, "long": []byte(strings.Repeat("x", 64<<10))} {
			for range 2 {
				got, err := guard.Once(bg, g, request(name), func(context.Context, *gorm.DB) ([]byte, error) { return body, nil })
				wantNil(t, err)
				if string(got.Value) != string(body) {
					t.Errorf("%s: %d bytes came back, want %d", name, len(got.Value), len(body))
				}
			}
		}
		_, err := guard.Once(bg, g, request("too long"), func(context.Context, *gorm.DB) ([]byte, error) { return make([]byte, 64<<10+1), nil })
		wantIs(t, err, guard.ErrAnswer)
		_, err = guard.Once(bg, g, request("too long"), func(context.Context, *gorm.DB) ([]byte, error) { return make([]byte, 64<<10+1), nil }, guard.MaxAnswer(1<<20))
		wantNil(t, err)
		_, err = guard.Once(bg, g, request("NaN"), func(ctx context.Context, tx *gorm.DB) (float64, error) {
			return math.NaN(), takeOne(1)(ctx, tx)
		})
		wantIs(t, err, guard.ErrAnswer)
		e.wantTaken(0)

		_, err = guard.Once(bg, g, request("type"), func(context.Context, *gorm.DB) (string, error) { return "text", nil })
		wantNil(t, err)
		_, err = guard.Once(bg, g, request("type"), func(context.Context, *gorm.DB) (int, error) { t.Error("ran"); return 0, nil })
		wantIs(t, err, guard.ErrAnswer)
		_, err = guard.Once(bg, g, request("type"), func(context.Context, *gorm.DB) ([]byte, error) { t.Error("ran"); return nil, nil })
		wantIs(t, err, guard.ErrAnswer)
		pair, err := guard.Once(bg, g, request("pointer"), func(context.Context, *gorm.DB) (*receipt, error) { return &receipt{Left: 3}, nil })
		wantNil(t, err)
		if pair.Value == nil || pair.Value.Left != 3 {
			t.Errorf("the pointer's answer is %+v", pair.Value)
		}
	})
}

// TestOnceMistakes: what Once can't mean is said.
func TestOnceMistakes(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		g := e.Guard.Guard
		_, err := guard.Once[receipt](bg, g, request("a"), nil)
		if err == nil {
			t.Error("no error for a nil operation")
		}
		for name, opt := range map[string]guard.Option{
			"Protects": guard.Protects(&Stock{ID: 1}), "Combine": guard.Combine(), "For": guard.For(request("b")),
			"MaxAnswer": guard.MaxAnswer(1 << 24), "negative": guard.MaxAnswer(-1),
		} {
			if _, err := guard.Once(bg, g, request("a"), e.neverSells(), opt); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		_, err = guard.Once(bg, g, once.Request{}, e.neverSells())
		wantIs(t, err, once.ErrRequest)
		_, err = guard.Once(bg, g, request("a"), func(ctx context.Context, _ *gorm.DB) (receipt, error) {
			for _, id := range []string{"a", "b"} {
				_, err := guard.Once(ctx, g, request(id), e.neverSells())
				wantIs(t, err, guard.ErrNested)
			}
			return receipt{}, nil
		})
		wantNil(t, err)
	})
}

// TestOnceWithoutTheLock: the claim is all that a request needs.
func TestOnceWithoutTheLock(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		g, _ := e.dbOnly(guard.Config{})
		raw := func(_ context.Context, tx *gorm.DB) (receipt, error) {
			return receipt{Left: 1}, tx.Model(&Stock{}).Where("id = 1").Update("left", 1).Error
		}
		_, err := guard.Once(bg, g, request("a"), raw, guard.Also("sku:1", &Stock{ID: 1}))
		wantIs(t, err, guard.ErrUnavailable)
		got, err := guard.Once(bg, g, request("a"), sells(1), guard.Also("sku:1", &Stock{ID: 1}))
		wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Left: 8}})
		got, err = guard.Once(bg, g, request("a"), e.neverSells(), guard.Also("sku:1", &Stock{ID: 1}))
		wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Left: 8}, Replayed: true})
	})
}
