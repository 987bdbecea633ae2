package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

func Example() {
	ctx := context.Background()
	locker, err := lock.New(memlock.New(), lock.Config{TTL: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	lease, err := locker.Acquire(ctx, "order:7")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("locked", lease.Grant().Key)

	_, err = locker.TryAcquire(ctx, "order:7")
	if held, ok := errors.AsType[*lockengine.HeldError](err); ok {
		fmt.Println("held by the first caller:", held.Holder.Owner == lease.Grant().Owner)
	}

	if err := lease.Release(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("released:", errors.Is(lease.Err(), lockengine.ErrNotHeld))
	// Output:
	// locked order:7
	// held by the first caller: true
	// released: true
}

// A holder works under the context of its lease, which ends when the lock is
// lost.
func ExampleLease_Context() {
	ctx := context.Background()
	engine := memlock.New()
	locker, err := lock.New(engine, lock.Config{TTL: 100 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	lease, err := locker.Acquire(ctx, "order:7")
	if err != nil {
		fmt.Println(err)
		return
	}
	// As when a master dies before its replica has the key.
	_ = engine.Release(ctx, lockengine.Request{Key: "order:7", Owner: lease.Grant().Owner})
	<-lease.Context().Done()
	fmt.Println("lost:", errors.Is(context.Cause(lease.Context()), lock.ErrLost))
	fmt.Println("told again by Release:", errors.Is(lease.Release(ctx), lock.ErrLost))
	// Output:
	// lost: true
	// told again by Release: true
}
