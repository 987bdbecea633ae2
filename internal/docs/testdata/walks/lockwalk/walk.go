package lockwalk

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"

	"shop/crowd"
)

// COPY A better lock

// Walk is the rest of the program.
func Walk() {
	ctx := context.Background()
	nodes := strings.Split(strings.TrimPrefix(os.Getenv("REDIS_URL"), "redis+cluster://"), ",")
	locker, err := openLocks(redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes}))
	if err != nil {
		log.Fatal(err)
	}
	at, built := 0, 0 // which the lock guards
	crowd.Repeat(func(int) error {
		return nightly(ctx, locker, func(context.Context) error {
			at++
			if at != 1 {
				return errors.New("another caller is here")
			}
			built++
			at--
			return nil
		})
	})
	fmt.Printf("%d one after the other\n", built)
}
