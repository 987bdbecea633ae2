package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

func belay(name, settings string, cfg lock.Config) contender {
	return contender{
		name: name, settings: settings, ours: true,
		open: func(addrs []string) (locker, error) { return openBelay(addrs, cfg) },
	}
}

type belayLocker struct {
	engine redislock.Engine
	locker *lock.Locker
}

func openBelay(addrs []string, cfg lock.Config) (locker, error) {
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: addrs}, redislock.Config{})
	if err != nil {
		return nil, err
	}
	l, err := lock.New(engine, cfg)
	if err != nil {
		_ = engine.Close(context.Background())
		return nil, err
	}
	return &belayLocker{engine, l}, nil
}

func (l *belayLocker) acquire(ctx context.Context, key string, wait bool) (held, error) {
	take := l.locker.TryAcquire
	if wait {
		take = l.locker.Acquire
	}
	lease, err := take(ctx, key)
	if errors.Is(err, lock.ErrHeld) && !wait {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	return func() error { return lease.Release(context.Background()) }, nil
}

func (l *belayLocker) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = l.locker.Close(ctx)
	_ = l.engine.Close(context.Background())
}
