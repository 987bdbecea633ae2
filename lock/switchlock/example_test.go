package switchlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A service that can leave its Redis. The engines and the source of this example are in
// memory; a service has redislock.Open, sqllock.New and sqllock.NewSource for them.
func Example() {
	ctx := context.Background()
	engine, err := switchlock.New(switchlock.Config{
		Source:  new(store),
		Engines: map[string]lockengine.Engine{"redis": memlock.New(), "sql": memlock.New()},
		First:   "redis",
		Lease:   100 * time.Millisecond, TTL: time.Second, // a switch of two seconds
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close(ctx)
	locker, err := lock.New(engine, lock.Config{TTL: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)
	lease, err := locker.Acquire(ctx, "order:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := engine.To(ctx, switchlock.Change{To: "sql", By: "alice"}); err != nil {
		fmt.Println(err)
		return
	}
	for s := engine.State(); s.Epoch < 2 || !s.Settled; s = engine.State() {
		<-time.After(10 * time.Millisecond)
	}
	fmt.Println("locks are kept in", engine.State().To)
	fmt.Println("the lock has moved, too:", lease.Err() == nil, lease.Release(ctx) == nil)
	// Output:
	// locks are kept in sql
	// the lock has moved, too: true true
}
