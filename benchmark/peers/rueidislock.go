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

func (l rueidisLocker) acquire(ctx context.Context, key string, wait bool) (held, error) {
	take := l.TryWithContext
	if wait {
		take = l.WithContext
	}
	ctx, release, err := take(ctx, key)
	if errors.Is(err, rueidislock.ErrNotLocked) && !wait {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		lost := ctx.Err() != nil // the end of ctx shows the loss of the lock
		release()
		if lost {
			return errLost
		}
		return nil
	}, nil
}

func (l rueidisLocker) close() { l.Close() }
