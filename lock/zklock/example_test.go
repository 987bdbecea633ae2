package zklock_test

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/zklock"
)

func Example() {
	engine, err := zklock.New(zklock.Config{Servers: []string{"zk1:2181", "zk2:2181", "zk3:2181"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close(context.Background())
	locker, err := lock.New(engine, lock.Config{}) // a ttl of 30 s, within a session of 40 s
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(context.Background())
	lease, err := locker.Acquire(context.Background(), "order:7")
	if err != nil {
		fmt.Println(err)
		return
	}
	// ... what is to be done under the lock, with lease.Context()
	if err := lease.Release(context.Background()); err != nil {
		fmt.Println(err) // the lock was lost meanwhile
	}
}
