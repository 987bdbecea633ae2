package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// With the default of 20 ms, a busy cluster makes it give up attempts that
// would have succeeded.
const rueidisTryNextAfter = time.Second

func rueidisMajority1() contender {
	return contender{
		name: "rueidislock",
		settings: fmt.Sprintf("rueidislock %s, KeyMajority 1, NoLoopTracking, KeyValidity %v, TryNextAfter %v",
			measure.ModuleVersion("github.com/redis/rueidis"), ttl, rueidisTryNextAfter),
		open: openRueidis,
	}
}

type rueidisLocker struct{ rueidislock.Locker }

func openRueidis(addrs []string) (locker, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: addrs},
		KeyMajority:    1,
		NoLoopTracking: true,
		KeyValidity:    ttl,
		TryNextAfter:   rueidisTryNextAfter,
	})
	if err != nil {
		return nil, err
	}
	return rueidisLocker{l}, nil
}

func (l rueidisLocker) acquire(ctx context.Context, key string) (held, error) {
	ctx, release, err := l.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return ending(ctx, release), nil
}

func (l rueidisLocker) try(ctx context.Context, key string) (held, error) {
	ctx, release, err := l.TryWithContext(ctx, key)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	return ending(ctx, release), nil
}

// ending releases a lock whose loss shows as the end of ctx.
func ending(ctx context.Context, release context.CancelFunc) held {
	return func() error {
		lost := ctx.Err() != nil
		release()
		if lost {
			return errLost
		}
		return nil
	}
}

func (l rueidisLocker) close() { l.Close() }
