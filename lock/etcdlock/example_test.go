package etcdlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/etcdlock"
)

// Three members of etcd, of which one may fail.
func Example() {
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{"10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"},
		DialTimeout: 5 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	engine, err := etcdlock.New(client, etcdlock.Config{Prefix: "shop/lock/"})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(ctx)
	locker, err := lock.New(engine, lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(ctx)
	fmt.Println(len(client.Endpoints()), "members")
	// Output: 3 members
}
