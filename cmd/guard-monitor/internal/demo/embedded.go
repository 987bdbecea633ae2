package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// embedded is a scene that needs nothing but Go.
type embedded struct {
	dir     string
	redis   *miniredis.Miniredis
	pool    *sql.DB
	orm     *gorm.DB
	monitor *localMonitor
	relay   notify.Publisher // what the outboxes publish to: the monitor

	removals int // of locks
}

// openEmbedded starts the servers, with their data in a folder that close
// removes.
func openEmbedded(ctx context.Context) (_ *embedded, err error) {
	e := &embedded{redis: miniredis.NewMiniRedis()}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.dir, err = os.MkdirTemp("", "belay-demo-"); err != nil {
		return nil, err
	}
	if err = e.redis.Start(); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if e.monitor, err = startMonitor(ctx, filepath.Join(e.dir, "monitor.db")); err != nil {
		return nil, err
	}
	e.relay = e.monitor
	if e.orm, err = openSQLite(e.shopDB(), &e.pool); err != nil {
		return nil, err
	}
	return e, stockUp(ctx, e.orm, items)
}

func (e *embedded) is() string {
	return "Redis, the database (SQLite), the broker and guard-monitor are all in this process."
}
func (e *embedded) database() string { return "SQLite" }
func (e *embedded) broker() string   { return "the broker" }
func (e *embedded) db() *gorm.DB     { return e.orm }
func (e *embedded) desk() *desk      { return &e.monitor.desk }
func (e *embedded) shopDB() string   { return filepath.Join(e.dir, "shop.db") }

// newInstance gives an instance two pools: SQLite lets one writer in at a time,
// and an event should not queue behind sales.
func (e *embedded) newInstance(name string) (_ *instance, err error) {
	i := &instance{name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.close(context.Background()))
		}
	}()
	client := redis.NewClient(&redis.Options{Addr: e.redis.Addr()})
	i.closes(func(context.Context) error { return client.Close() })
	engine, err := redislock.New(client, redislock.Config{})
	if err != nil {
		return nil, err
	}
	sales, err := openSQLite(e.shopDB(), &i.pool)
	if err != nil {
		return nil, err
	}
	i.closes(func(context.Context) error { return i.pool.Close() })
	var pool *sql.DB
	events, err := openSQLite(e.shopDB(), &pool)
	if err != nil {
		return nil, err
	}
	i.closes(func(context.Context) error { return pool.Close() })
	return i, i.start(engine, sales, events, e.relay)
}

// loseLock removes the lock, as somebody at a console does who wants to free it,
// and lets the double in meanwhile:
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
func (e *embedded) loseLock(ctx context.Context, scr *screen, click, double request) (clicked, doubled, err error) {
	pool := click.to.pool
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	waits := pool.Stats().WaitCount
	answer := make(chan error, 1)
	go func() { answer <- click.to.buy(ctx, click.no) }()

	err = until(ctx, click.to.name+" to have the lock", func() (bool, error) {
		return pool.Stats().WaitCount > waits || len(answer) > 0, nil
	})
	select {
	case clicked = <-answer:
		return clicked, nil, errors.Join(click.early(clicked), conn.Close())
	default:
	}
	var command string
	if err == nil {
		command, err = e.removeLock(ctx)
	}
	if err == nil {
		scr.say(ctx, click.to.name, "has the lock "+itemKey+" to sell order "+click.no)
		scr.alarm(ctx, "somebody", "removes the lock from Redis: "+command)
		if doubled = double.to.buy(ctx, double.no); doubled == nil {
			scr.say(ctx, double.to.name, "gets the lock, too, sells order "+double.no+" and commits")
		}
	}
	err = errors.Join(err, conn.Close()) // the click goes on
	return <-answer, doubled, err
}

// removeLock has somebody delete the lock, or, every second time, all that Redis
// has, and returns the command.
func (e *embedded) removeLock(ctx context.Context) (command string, err error) {
	if !e.redis.Exists(itemKey) {
		return "", errors.New("there is no lock to remove")
	}
	begun, monitor := time.Now(), watched{e.monitor.store}
	client := redis.NewClient(&redis.Options{Addr: e.redis.Addr()})
	defer client.Close()
	if e.removals++; e.removals%2 == 0 {
		return "FLUSHALL", errors.Join(client.FlushAll(ctx).Err(), monitor.saw(ctx, watch.Flush, watch.FlushAll, e.redis.Addr(), begun))
	}
	return "DEL " + itemKey, errors.Join(client.Del(ctx, itemKey).Err(), monitor.saw(ctx, watch.Deletion, "del", e.redis.Addr(), begun))
}

func (e *embedded) close() error {
	var errs []error
	if e.pool != nil {
		errs = append(errs, e.pool.Close())
	}
	if e.monitor != nil {
		errs = append(errs, e.monitor.close())
	}
	e.redis.Close()
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}
