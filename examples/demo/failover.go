package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// failover sends a click, loses its lock while it works, as a Redis master does
// that dies before its replica has the key, and lets its double in meanwhile:
//
//	the click's instance       Redis             the double's instance
//	takes the lock             has the key
//	waits for a connection     loses the key
//	                           has the key       takes the lock
//	                                             inserts the order, commits
//	                                             releases the lock
//	begins its transaction
//	inserts the order: refused
//
// Nothing is left to luck: the click stands between lock and transaction because
// the only database connection of its instance is taken away for that long.
func failover(ctx context.Context, redis *miniredis.Miniredis, click, double request) (clicked, doubled error) {
	pool := click.to.sales
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err, errNotSent
	}
	waits := pool.Stats().WaitCount
	answer := make(chan error, 1)
	go func() { answer <- click.to.buy(ctx, click.no) }()

	doubled = until(ctx, func() bool { return pool.Stats().WaitCount > waits || len(answer) > 0 })
	if doubled == nil && !redis.Del(itemKey) {
		doubled = errors.New("there was no lock to lose")
	}
	if doubled == nil {
		doubled = double.to.buy(ctx, double.no)
	}
	err = conn.Close() // the click goes on
	return <-answer, errors.Join(doubled, err)
}

// until waits for done to become true.
func until(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("stage the failover: %w", ctx.Err())
		}
	}
	return nil
}
