//go:build failpoints

package failpoints_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/relay"
)

// Arrival is the effect of a message. No index keeps one from arriving twice.
type Arrival struct {
	ID   uint
	Body string `gorm:"size:64"`
}

// relayRole is a relay whose messages go to an inbox of the same database, or the command that decides
// a dead letter.
type relayRole struct {
	DSN   string
	Redis []string
	Sent  string // path of the file that gets the body of each message that is sent
	Bad   string // what the second message meets
	Retry string // the id of the dead letter that the command sends again
}

func (r *relayRole) run(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, err := open(r.DSN)
	if err != nil {
		return err
	}
	if r.Retry != "" {
		seen, err := relay.Find(ctx, db, r.Retry)
		if err != nil {
			return err
		}
		return relay.Retry(ctx, db, seen)
	}
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: r.Redis}, redislock.Config{NoTracking: true})
	if err != nil {
		return err
	}
	locker, err := lock.New(engine, lock.Config{TTL: shortTTL, Logger: log})
	if err != nil {
		return err
	}
	g, err := guard.New(db, locker, guard.Config{Service: "failpoints", EndTimeout: endTimeout, Logger: log})
	if err != nil {
		return err
	}
	box, err := inbox.New(g, inbox.Config{Consumer: "arrivals"})
	if err != nil {
		return err
	}
	sent, err := os.OpenFile(r.Sent, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = relay.New(db, relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: way(func(ctx context.Context, m relay.Message) error {
		if _, err := fmt.Fprintln(sent, string(m.Body)); err != nil {
			return err
		}
		switch {
		case string(m.Body) != bodyOf(2) || r.Bad == "":
		case r.Bad == dead:
			return fmt.Errorf("%w: no", relay.ErrRejected)
		default:
			return errors.New("no")
		}
		_, err := box.Handle(ctx, inbox.Message{ID: m.ID, Body: m.Body}, func(_ context.Context, tx *gorm.DB) error {
			return tx.Create(&Arrival{Body: string(m.Body)}).Error
		}, guard.Wait(patience/2))
		return err
	})}}, Logger: log}); err != nil {
		return err
	}
	select {} // until the death
}

// way is a way out of a relay.
type way func(ctx context.Context, m relay.Message) error

func (w way) Publish(ctx context.Context, m relay.Message) error { return w(ctx, m) }

// bodyOf is the body of the nth message.
func bodyOf(n int) string { return fmt.Sprint("message ", n) }
