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

func (l *redsyncLocker) mutex(key string) *redsync.Mutex {
	return l.sync.NewMutex(key,
		redsync.WithExpiry(ttl),
		redsync.WithTries(math.MaxInt),
		redsync.WithRetryDelay(redsyncRetry))
}

func (l *redsyncLocker) acquire(ctx context.Context, key string) (held, error) {
	m := l.mutex(key)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return unlock(m), nil
}

func (l *redsyncLocker) try(ctx context.Context, key string) (held, error) {
	m := l.mutex(key)
	err := m.TryLockContext(ctx)
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	return unlock(m), nil
}

func unlock(m *redsync.Mutex) held {
	return func() error {
		ok, err := m.Unlock()
		if errors.Is(err, redsync.ErrLockAlreadyExpired) || err == nil && !ok {
			return errLost
		}
		return err
	}
}

func (l *redsyncLocker) close() { _ = l.client.Close() }
