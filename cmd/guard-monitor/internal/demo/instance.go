package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify/outbox"
)

// quiet keeps what the parts log off the screen.
var quiet = slog.New(slog.DiscardHandler)

// instance is one of the processes that a service consists of. It shares
// nothing with the others but the servers.
type instance struct {
	*belay.Belay
	name string
	pool *sql.DB // of sales

	closers []func(context.Context) error // the last first
}

// newInstance starts an instance of the shop: the lock, the business database, and
// the outbox that keeps what it reports until the broker has it. It gives it two
// pools: SQLite lets one writer in at a time, and an event should not queue behind
// sales.
func (e *embedded) newInstance(ctx context.Context, name string) (_ *instance, err error) {
	i := &instance{name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.close(context.WithoutCancel(ctx)))
		}
	}()
	client := redis.NewClient(&redis.Options{Addr: e.redis.Addr()})
	i.closes(func(context.Context) error { return client.Close() })
	// The story is of a loss that the database finds, not of the server's report before it.
	engine, err := redislock.New(client, redislock.Config{NoTracking: true})
	if err != nil {
		return nil, err
	}
	sales, pool, err := openSQLite(e.shopDB())
	if err != nil {
		return nil, err
	}
	i.pool = pool
	i.closes(func(context.Context) error { return pool.Close() })
	events, eventPool, err := openSQLite(e.shopDB())
	if err != nil {
		return nil, err
	}
	i.closes(func(context.Context) error { return eventPool.Close() })
	box, err := outbox.New(events, outbox.Config{
		Name: name, Service: service, Instance: name, Relay: e.relay, HeartbeatInterval: beat, Logger: quiet,
	})
	if err != nil {
		return nil, err
	}
	i.closes(box.Close)
	i.Belay, err = belay.Open(ctx, belay.Config{
		Service: service, DB: sales, Engine: engine, Publisher: box, Logger: quiet,
		Lock: lock.Config{TTL: lockTTL}, Guard: guard.Config{Instance: name},
	})
	if err != nil {
		return nil, err
	}
	i.closes(i.Close)
	return i, nil
}

// closes has f called before what was started earlier is closed.
func (i *instance) closes(f func(context.Context) error) { i.closers = append(i.closers, f) }

// close stops what was started. The outbox hands over what it still has.
func (i *instance) close(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(i.closers) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

// startShop starts the instances of the service.
func (e *embedded) startShop(ctx context.Context) (shop []*instance, err error) {
	for n := range instances {
		i, err := e.newInstance(ctx, "shop-"+string(rune('a'+n)))
		if err != nil {
			return nil, errors.Join(err, closeShop(shop))
		}
		shop = append(shop, i)
	}
	return shop, nil
}

// closeShop stops the instances. They hand over what they still have to report.
func closeShop(shop []*instance) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, i := range shop {
		errs = append(errs, i.close(ctx))
	}
	return errors.Join(errs...)
}
