package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// scriptDir is where Belay's scripts are, seen from this directory. They are
// read when they are needed, so that there is no copy that could differ.
const scriptDir = "../../lock/redislock"

// raw is what a cycle costs at least without a library: Belay's two scripts,
// sent one by one through a plain client.
func raw() contender {
	return contender{
		name:       "raw",
		settings:   "Belay's acquire and release scripts through redis.ClusterClient with its defaults; can't wait, so own keys and tries only",
		open:       openRaw,
		ours:       true,
		cannotWait: true,
	}
}

type rawLocker struct {
	client       *redis.ClusterClient
	lock, unlock *redis.Script
	owners       atomic.Int64
}

func openRaw(addrs []string) (locker, error) {
	l := &rawLocker{client: redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})}
	for name, script := range map[string]**redis.Script{"acquire.lua": &l.lock, "release.lua": &l.unlock} {
		source, err := fs.ReadFile(os.DirFS(scriptDir), name)
		if err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		*script = redis.NewScript(string(source))
	}
	return l, nil
}

func (l *rawLocker) acquire(ctx context.Context, key string, _ bool) (held, error) {
	owner := strconv.Itoa(os.Getpid()) + ":" + strconv.FormatInt(l.owners.Add(1), 10)
	reply, err := l.lock.Run(ctx, l.client, []string{key}, owner, ttl.Milliseconds(), "raw", 0).Slice()
	if err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	if len(reply) == 0 || reply[0] != int64(1) {
		return nil, errHeld
	}
	return func() error { return l.release(key, owner) }, nil
}

func (l *rawLocker) release(key, owner string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	freed, err := l.unlock.Run(ctx, l.client, []string{key}, owner, "redisson_lock__channel:{"+key+"}", "spublish", 0, "").Int()
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	if freed != 1 {
		return errLost
	}
	return nil
}

func (l *rawLocker) close() { _ = l.client.Close() }
