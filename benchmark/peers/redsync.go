package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// A failed try costs it two round trips, so it does best with a longer delay
// than redislock.
const redsyncRetry = 10 * time.Millisecond

func redsyncOnePool() contender {
	return contender{
		name:     "redsync",
		settings: fmt.Sprintf("redsync %s, one pool on redis.ClusterClient, expiry %v, retries each %v without limit", measure.ModuleVersion("github.com/go-redsync/redsync/v4"), ttl, redsyncRetry),
		open:     openRedsync,
		plain:    []string{"set"},
	}
}

type redsyncLocker struct {
	client *redis.ClusterClient
	sync   *redsync.Redsync
}

func openRedsync(addrs []string) (locker, error) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	return &redsyncLocker{client: client, sync: redsync.New(goredis.NewPool(client))}, nil
}

func (l *redsyncLocker) acquire(ctx context.Context, key string, wait bool) (held, error) {
	m := l.sync.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt), redsync.WithRetryDelay(redsyncRetry))
	take := m.TryLockContext
	if wait {
		take = m.LockContext
	}
	err := take(ctx)
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken && !wait {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		ok, err := m.Unlock()
		if errors.Is(err, redsync.ErrLockAlreadyExpired) || err == nil && !ok {
			return errLost
		}
		return err
	}, nil
}

func (l *redsyncLocker) close() { _ = l.client.Close() }
