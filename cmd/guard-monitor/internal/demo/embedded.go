package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // SQLite without cgo

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// embedded is the servers of the story, all in this process.
type embedded struct {
	dir     string
	redis   *miniredis.Miniredis
	db      *gorm.DB // of the shop
	pool    *sql.DB  // of db
	monitor *localMonitor
	relay   notify.Publisher // what the outboxes publish to: the monitor

	removals int // of locks
}

// openEmbedded starts the servers, with their data in a folder that close
// removes, and puts the items on the shelf.
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
	if e.monitor, err = startMonitor(ctx, e.monitorDB()); err != nil {
		return nil, err
	}
	e.relay = e.monitor
	if e.db, e.pool, err = openSQLite(e.shopDB()); err != nil {
		return nil, err
	}
	db := e.db.WithContext(ctx)
	if err := db.AutoMigrate(&Order{}, &Stock{}); err != nil {
		return nil, fmt.Errorf("create tables: %w", err)
	}
	if err := outbox.Migrate(ctx, db); err != nil {
		return nil, err
	}
	return e, db.Create(&Stock{ID: itemID, Left: items}).Error
}

func (e *embedded) monitorDB() string { return filepath.Join(e.dir, "monitor.db") }

func (e *embedded) shopDB() string { return filepath.Join(e.dir, "shop.db") }

// openSQLite opens the database in the file path with a pool of one connection,
// which the caller closes.
func openSQLite(path string) (*gorm.DB, *sql.DB, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"}
	pool, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	pool.SetMaxOpenConns(1)
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", errors.Join(err, pool.Close()))
	}
	return db, pool, nil
}

// loseLock sends click and, while the instance that it goes to works under the
// lock, removes the lock, as somebody at a console does who wants to free it, and
// sends double to another instance:
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
		early := errors.New(click.to.name + " did not get to its insert")
		return clicked, nil, errors.Join(early, clicked, conn.Close())
	default:
	}
	var command string
	if err == nil {
		command, err = e.removeLock(ctx)
	}
	if err == nil {
		scr.say(click.to.name, "has the lock "+itemKey+" to sell order "+click.no)
		scr.say("somebody", "removes the lock from Redis: "+command)
		if doubled = double.to.buy(ctx, double.no); doubled == nil {
			scr.say(double.to.name, "gets the lock, too, sells order "+double.no+" and commits")
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
	begun, node := time.Now(), e.redis.Addr()
	client := redis.NewClient(&redis.Options{Addr: node})
	defer client.Close()
	if e.removals++; e.removals%2 == 0 {
		return "FLUSHALL", errors.Join(client.FlushAll(ctx).Err(), e.monitor.saw(ctx, watch.Flush, watch.FlushAll, node, begun))
	}
	return "DEL " + itemKey, errors.Join(client.Del(ctx, itemKey).Err(), e.monitor.saw(ctx, watch.Deletion, "del", node, begun))
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
