package redislock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

func Example() {
	engine, err := redislock.Open(&redis.UniversalOptions{
		Addrs: []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"},
	}, redislock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(context.Background()) // after the Locker

	locker, err := lock.New(engine, lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
}

// An engine on a client of one's own, here of a single server.
func ExampleNew() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	engine, err := redislock.New(client, redislock.Config{Prefix: "orders:"})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(context.Background())
	locker, err := lock.New(engine, lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	ctx := context.Background()
	lease, err := locker.Acquire(ctx, "4711")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(server.Keys())
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(server.Keys())
	// Output:
	// [orders:4711]
	// []
}

// A lock that is granted only when a replica has it, too.
func ExampleConfig_replicas() {
	engine, err := redislock.Open(
		&redis.UniversalOptions{Addrs: []string{"10.0.0.1:6379"}},
		redislock.Config{Replicas: 1},
	)
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(context.Background())
}
