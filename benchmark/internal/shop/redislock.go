package shop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// errBusy: somebody has the lock.
var errBusy = errors.New("shop: busy")

// unlock deletes a lock if it is still the caller's own.
var unlock = redis.NewScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0`)

const redisLockTTL = 30 * time.Second

// underRedisLock runs op under the lock as it is usually written.
func underRedisLock(ctx context.Context, client redis.UniversalClient, key string, op func() error) (err error) {
	key, owner := "redis-lock:"+key, uuid.NewString()
	err = client.SetArgs(ctx, key, owner, redis.SetArgs{Mode: "NX", TTL: redisLockTTL}).Err()
	switch {
	case errors.Is(err, redis.Nil):
		return errBusy
	case err != nil:
		return fmt.Errorf("lock: %w", err)
	}
	defer func() {
		if e := unlock.Run(ctx, client, []string{key}, owner).Err(); err == nil && e != nil {
			err = fmt.Errorf("unlock: %w", e)
		}
	}()
	return op()
}
