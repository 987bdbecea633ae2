package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// instance is one of the processes that a service consists of. It shares
// nothing with the others but the addresses of the servers.
type instance struct {
	name   string
	guard  *guard.Guard
	locker *lock.Locker
	outbox *outbox.Outbox
	redis  *redis.Client
	sales  *sql.DB // one connection: SQLite lets one writer in at a time
	events *sql.DB // of the outbox, so that an event does not queue behind sales
}

// startInstance puts an instance together: the lock in Redis, the business
// database, and the outbox that keeps what it reports until broker has it.
func startInstance(name, redisAddr, dbPath string, broker notify.Publisher) (_ *instance, err error) {
	i := &instance{name: name, redis: redis.NewClient(&redis.Options{Addr: redisAddr})}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.close(context.Background()))
		}
	}()

	engine, err := redislock.New(i.redis)
	if err != nil {
		return nil, err
	}
	if i.locker, err = lock.New(engine, lock.Config{}); err != nil {
		return nil, err
	}
	sales, err := openDB(dbPath, &i.sales)
	if err != nil {
		return nil, err
	}
	events, err := openDB(dbPath, &i.events)
	if err != nil {
		return nil, err
	}
	if i.outbox, err = outbox.New(events, outbox.Config{Name: name, Service: "shop", Instance: name, Relay: broker}); err != nil {
		return nil, err
	}
	i.guard, err = guard.New(sales, i.locker, guard.Config{Service: "shop", Instance: name, Publisher: i.outbox})
	return i, err
}

// close stops what was started, in the order in which it depends on each other.
// The outbox hands over what it still has.
func (i *instance) close(ctx context.Context) error {
	var errs []error
	if i.guard != nil {
		errs = append(errs, i.guard.Close(ctx))
	}
	if i.locker != nil {
		errs = append(errs, i.locker.Close(ctx))
	}
	if i.outbox != nil {
		errs = append(errs, i.outbox.Close(ctx))
	}
	for _, pool := range []*sql.DB{i.sales, i.events} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(append(errs, i.redis.Close())...)
}
