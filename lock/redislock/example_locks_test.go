package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// openLocks is called once, in main. The client is one that the program has.
func openLocks(client redis.UniversalClient) (*lock.Locker, error) {
	engine, err := redislock.New(client, redislock.Config{})
	if err != nil {
		return nil, err
	}
	return lock.New(engine, lock.Config{})
}

// nightly builds a report while no other process does.
func nightly(ctx context.Context, locker *lock.Locker, build func(context.Context) error) error {
	lease, err := locker.Acquire(ctx, "report:daily") // waits until ctx ends
	if err != nil {
		return err
	}
	err = build(lease.Context()) // which ends when the lock is lost
	return errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
}

// A lock and nothing else, beside a client of Redis.
func Example_locks() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	locker, err := openLocks(client)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer locker.Engine().Close(ctx) // after the Locker
	defer locker.Close(ctx)

	err = nightly(ctx, locker, func(context.Context) error {
		_, err := locker.TryAcquire(ctx, "report:daily")
		fmt.Println("another caller is told so:", errors.Is(err, lock.ErrHeld))
		return nil
	})
	fmt.Println(err)
	// Output:
	// another caller is told so: true
	// <nil>
}
