package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// Shorter and 64 callers drown the server in tries; longer and locks lie about
// free.
const bsmRetry = 5 * time.Millisecond

func bsmRedislock() contender {
	return contender{
		name:     "redislock",
		settings: fmt.Sprintf("bsm/redislock %s on redis.ClusterClient, ttl %v, LinearBackoff(%v), no limit to the retries", measure.ModuleVersion("github.com/bsm/redislock"), ttl, bsmRetry),
		open:     openBSM,
	}
}

type bsmLocker struct {
	redis  *redis.ClusterClient
	client *bsm.Client
}

func openBSM(addrs []string) (locker, error) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	return &bsmLocker{client, bsm.New(client)}, nil
}

var bsmWait = &bsm.Options{RetryStrategy: bsm.LinearBackoff(bsmRetry)}

func (l *bsmLocker) acquire(ctx context.Context, key string, wait bool) (held, error) {
	var opts *bsm.Options
	if wait {
		opts = bsmWait
	}
	lock, err := l.client.Obtain(ctx, key, ttl, opts)
	if errors.Is(err, bsm.ErrNotObtained) {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		err := lock.Release(context.Background())
		if errors.Is(err, bsm.ErrLockNotHeld) {
			return errLost
		}
		return err
	}, nil
}

func (l *bsmLocker) close() { _ = l.redis.Close() }
