package chaos_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// ttl outlasts a failover, so that a lock that it lost is missed by the database
// and not by the watchdog, and is short enough for a pause to outlive it.
const ttl = 5 * time.Second

// callers is how many goroutines of a worker call Do, one after the other.
const callers = 8

// A worker is one instance of a service, in a process of its own. It works until
// its standard input ends, on which it reads the keys whose locks are wiped.
type worker struct {
	name    string
	journal *journal
	guard   *guard.Guard
}

func work(name string) error {
	w := &worker{name: name, journal: new(journal)}
	kind, wiped := databases[chosen()], new(wiped)
	connector, err := kind.connector(os.Getenv("BELAY_CHAOS_DSN"))
	if err != nil {
		return err
	}
	pool, db, err := open(kind, watchedConnector{connector, w.journal, wiped})
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer pool.Close()
	engine, err := redislock.Open(&redis.ClusterOptions{Addrs: strings.Split(os.Getenv("BELAY_CHAOS_REDIS"), ",")}, redislock.Config{})
	if err != nil {
		return err
	}
	defer engine.Close(context.Background())
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	locker, err := lock.New(watchedEngine{engine, w.journal}, lock.Config{TTL: ttl, Logger: log})
	if err != nil {
		return err
	}
	policy, err := strconv.Atoi(os.Getenv("BELAY_CHAOS_POLICY"))
	if err != nil {
		return err
	}
	w.guard, err = guard.New(db, locker, guard.Config{
		Service: "chaos", Instance: name, Publisher: watchedPublisher{w.journal}, OnUnavailable: guard.Policy(policy), Logger: log,
	})
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { w.call(ctx, fmt.Sprintf("%s.%d", name, i)) })
	}
	for keys := bufio.NewScanner(os.Stdin); keys.Scan(); {
		wiped.note(keys.Text())
	}
	cancel()
	running.Wait()
	ctx, cancel = context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return errors.Join(w.guard.Close(ctx), locker.Close(ctx))
}

// open opens a pool, and another one if the connection is cut: gorm closes the pool
// then.
func open(kind database, c driver.Connector) (pool *sql.DB, db *gorm.DB, err error) {
	for range 5 {
		pool = sql.OpenDB(c)
		pool.SetMaxOpenConns(2 * callers)
		pool.SetMaxIdleConns(2 * callers)
		if db, err = gorm.Open(kind.dialector(pool), &gorm.Config{Logger: logger.Discard}); err == nil {
			return pool, db, nil
		}
		_ = pool.Close()
	}
	return nil, nil, err
}

// call does one operation after the other until ctx ends.
func (w *worker) call(ctx context.Context, caller string) {
	for n := 0; ctx.Err() == nil; n++ {
		do := fmt.Sprintf("%s.%d", caller, n)
		key, op := w.operation(do)
		w.journal.write(line{At: called, Do: do, Key: key})
		doing := context.WithValue(context.WithoutCancel(ctx), doKey{}, doing{do, key})
		wait := time.Duration(rand.IntN(2)) * time.Second // or fail fast
		err := w.guard.Do(doing, key, op, guard.Wait(wait))
		w.journal.write(line{At: returned, Do: do, Key: key, Result: result(err)})
		linger(ctx, time.Duration(rand.IntN(10))*time.Millisecond) // a refusal costs next to nothing
	}
}

// operation draws what to do next. It takes its time before the write, or after it,
// with the row locked.
func (w *worker) operation(do string) (key string, op guard.Op) {
	key, takes, write := draw(do)
	after := rand.IntN(2) == 0
	return key, func(ctx context.Context, tx *gorm.DB) error {
		w.journal.write(line{At: begun, Do: do, Key: key})
		if !after {
			linger(ctx, takes)
		}
		err := write(ctx, tx)
		if after && err == nil {
			linger(ctx, takes)
		}
		return err
	}
}

// draw draws a key, and what to write under it after some time.
func draw(do string) (key string, takes time.Duration, write guard.Op) {
	takes = time.Duration(rand.IntN(4)) * time.Millisecond
	if rand.IntN(2) == 0 {
		id := rand.Int64N(counters) + 1
		return counterKey(id), takes, guard.Update(&Counter{ID: id}, func(c *Counter) error {
			c.N++
			linger(context.Background(), time.Duration(rand.IntN(3))*time.Millisecond)
			return nil
		}).Run
	}
	no := orderNo(now(), rand.IntN(3))
	if rand.IntN(200) == 0 { // a slow one, which a failover may catch
		takes = time.Duration(4+rand.IntN(3)) * time.Second
	}
	return orderKey(no), takes, guard.Insert(&Order{No: no, By: do}).Run
}

// linger is the time that a business operation takes.
func linger(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Results of Do.
const (
	done      = "done"
	duplicate = "duplicate"
	stale     = "stale"
	unknown   = "unknown"

	unavailable = "unavailable"
	failed      = "error: " // and the error
)

func result(err error) string {
	switch {
	case err == nil:
		return done
	case errors.Is(err, guard.ErrUnknown): // it may match what kept Do from finding out, too
		return unknown
	case errors.Is(err, guard.ErrBusy):
		return "busy"
	case errors.Is(err, guard.ErrDuplicate):
		return duplicate
	case errors.Is(err, guard.ErrStale):
		return stale
	case errors.Is(err, guard.ErrIntercepted):
		return "intercepted"
	case errors.Is(err, guard.ErrLost):
		return "lost"
	case errors.Is(err, guard.ErrUnavailable):
		return unavailable
	}
	return failed + err.Error()
}
