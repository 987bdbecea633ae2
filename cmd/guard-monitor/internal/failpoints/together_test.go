//go:build failpoints

package failpoints_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// requested is the request of a trial, in a database of its own. Its key has the name of
// the key that stands for the row.
func requested(key string) once.Request {
	return once.Request{Operation: "failpoints", Scope: once.Anyone, ID: key}
}

// serve runs the operation of a request. It says the answer, too.
func (r *serviceRole) serve(ctx context.Context, g *guard.Guard) {
	opts := []guard.Option{guard.Also(r.Key, &Stock{ID: stockID}), guard.Wait(patience / 2)}
	if r.Forget {
		opts = append(opts, guard.Remember(0))
	}
	for range r.Runs {
		a, err := guard.Once(ctx, g, requested(r.Key), r.answer, opts...)
		if err == nil {
			fmt.Println("answer", a.Value, a.Refused)
		}
		if a.Replayed {
			err = guard.ErrDuplicate // as the others end
		}
		fmt.Println("ended", outcome(err))
	}
}

// answer is the operation of a request. No two runs have the same answer.
func (r *serviceRole) answer(ctx context.Context, tx *gorm.DB) (string, error) {
	if err := r.stand(ctx); err != nil {
		return "", err
	}
	sell := guard.Update(&Stock{ID: stockID}, func(s *Stock) error { s.Left--; return nil })
	if err := sell.Run(ctx, tx); err != nil {
		return "", err
	}
	if r.Do == refusal {
		return "", guard.Refuse(uuid.NewString())
	}
	return uuid.NewString(), nil
}

// gather has callers wait for the lock together, so that they share a transaction: each
// inserts an order, or serves a request, and takes from the one stock.
func (r *serviceRole) gather(ctx context.Context, g *guard.Guard, locker *lock.Locker) {
	for range r.Runs {
		lease, err := locker.Acquire(ctx, r.Key)
		if err != nil {
			fmt.Println("ended", outcome(err))
			return
		}
		var callers, waiting sync.WaitGroup
		waiting.Add(crewSize)
		for n := range crewSize {
			callers.Go(func() {
				change := guard.Update(&Stock{ID: stockID}, func(s *Stock) error { s.Left--; return nil })
				opts := []guard.Option{guard.Combine(), guard.Wait(patience / 2)}
				if r.Do == crew {
					change = guard.All(guard.Insert(&Order{No: fmt.Sprint(orderNo, ".", n)}), change)
				} else {
					opts = append(opts, guard.For(requested(fmt.Sprint(r.Key, ".", n))))
				}
				ctx := context.WithValue(ctx, waitsKey{}, sync.OnceFunc(waiting.Done))
				fmt.Println("ended", outcome(g.Apply(ctx, r.Key, change, opts...)))
			})
		}
		waiting.Wait()
		_ = r.stand(ctx)
		_ = lease.Release(ctx) // hands it over
		callers.Wait()
	}
}

// waits is an Observer that calls what the context of a call has for the begin of its wait.
// A call that is to share a transaction is in its line by then.
type waits struct{}

type waitsKey struct{}

func (waits) Start(ctx context.Context, step guard.Step, _ string) (context.Context, func(error)) {
	if begun, ok := ctx.Value(waitsKey{}).(func()); ok && step == guard.StepLock {
		begun()
	}
	return ctx, func(error) {}
}

func (waits) Trace(context.Context) notify.Trace { return notify.Trace{} }
