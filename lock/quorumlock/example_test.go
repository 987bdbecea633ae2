package quorumlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/quorumlock"
	"github.com/belaygo/belay/lock/redislock"
)

// RedLock: five Redis servers, of which two may fail.
func Example() {
	ctx := context.Background()
	var nodes []lockengine.Engine
	for n := range 5 {
		opts, err := redislock.ParseURL(fmt.Sprintf("redis://10.0.0.%d", n+1))
		if err != nil {
			log.Fatal(err)
		}
		node, err := redislock.Open(opts, redislock.Config{AskStart: true})
		if err != nil {
			log.Fatal(err)
		}
		defer node.Close(ctx)
		nodes = append(nodes, node)
	}
	engine, err := quorumlock.New(nodes, quorumlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(ctx)
	locker, err := lock.New(engine, lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(ctx)
	fmt.Println(len(nodes), "nodes")
	// Output: 5 nodes
}
