package memlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// Two Lockers on one engine are like two processes on one Redis. A test loses a lock
// by its release in the engine.
func Example() {
	ctx := context.Background()
	engine := memlock.New()
	one, err := lock.New(engine, lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer one.Close(ctx)
	two, err := lock.New(engine, lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer two.Close(ctx)

	lease, err := one.Acquire(ctx, "order:7")
	if err != nil {
		log.Fatal(err)
	}
	_, err = two.TryAcquire(ctx, "order:7")
	fmt.Println(err != nil)
	_ = engine.Release(ctx, lockengine.Request{Key: "order:7", Owner: lease.Grant().Owner})
	other, err := two.TryAcquire(ctx, "order:7")
	fmt.Println(err)
	fmt.Println(errors.Is(lease.Release(ctx), lock.ErrLost), other.Release(ctx))
	// Output:
	// true
	// <nil>
	// true <nil>
}
