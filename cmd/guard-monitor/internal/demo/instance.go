package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// quiet keeps what the parts log off the screen.
var quiet = slog.New(slog.DiscardHandler)

// instance is one of the processes that a service consists of. It shares
// nothing with the others but the servers.
type instance struct {
	name  string
	guard *guard.Guard
	pool  *sql.DB // of sales

	closing []func(context.Context) error // the last first
}

// start puts an instance together: the lock, the business database, and the
// outbox that keeps what it reports until relay has it. It closes nothing when
// it fails.
func (i *instance) start(engine lock.Engine, sales, events *gorm.DB, relay notify.Publisher) error {
	locker, err := lock.New(engine, lock.Config{TTL: lockTTL})
	if err != nil {
		return err
	}
	i.closes(locker.Close)
	box, err := outbox.New(events, outbox.Config{
		Name: i.name, Service: service, Instance: i.name, Relay: relay, HeartbeatInterval: heartbeat,
		Logger: quiet,
	})
	if err != nil {
		return err
	}
	i.closes(box.Close)
	i.guard, err = guard.New(sales, locker, guard.Config{Service: service, Instance: i.name, Publisher: box, Logger: quiet})
	if err != nil {
		return err
	}
	i.closes(i.guard.Close)
	return nil
}

// closes has f called before what was started earlier is closed.
func (i *instance) closes(f func(context.Context) error) { i.closing = append(i.closing, f) }

// close stops what was started. The outbox hands over what it still has.
func (i *instance) close(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(i.closing) {
		errs = append(errs, f(ctx))
	}
	i.closing = nil
	return errors.Join(errs...)
}
