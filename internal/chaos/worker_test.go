package chaos_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// ttl outlasts a failover, so that a lock that it lost is missed by the database
// and not by the watchdog, and is short enough for a pause to outlive it.
const ttl = 5 * time.Second

// callers is how many goroutines of a worker call Do, one after the other.
const callers = 8

// maxIdle is how long a connection to the database may be idle: what a peak has opened is not
// to look like a leak.
const maxIdle = 10 * time.Second

// A worker is one instance of a service, in a process of its own. It works until
// its standard input ends, on which it reads the keys whose locks are wiped.
type worker struct {
	name    string
	seed    uint64
	began   int64         // when the workers began
	pace    time.Duration // at most, between two calls
	journal *journal
	kind    database
	side    *sql.DB // for what the oracle does not watch
	wiped   wiped
	guard   *guard.Guard

	sideGuard   *guard.Guard // of what is no call of the oracle: see sideOf
	sideCommits atomic.Int64
}

// sideInstance is the name of a worker's second Guard in events.
func sideInstance(worker string) string { return worker + ".side" }

func work(name string) error {
	w := &worker{name: name, journal: new(journal), kind: databaseOf(chosen())}
	if err := w.configure(); err != nil {
		return err
	}
	if os.Getenv(transfersName) != "" {
		onlyTransfers()
	}
	connector, closePool, err := w.connector()
	if err != nil {
		return err
	}
	defer closePool()
	w.side = sql.OpenDB(connector)
	w.side.SetMaxIdleConns(1)
	defer w.side.Close()
	pool, db, err := open(w.kind, watchedConnector{connector, w}, w.idle())
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer pool.Close()
	end, err := w.open(db)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { w.call(ctx, fmt.Sprintf("%s.%d", name, i)) })
	}
	if text := os.Getenv(portsName); text != "" {
		running.Go(func() { err = w.sample(ctx, parsePorts(text)) })
	}
	for keys := bufio.NewScanner(os.Stdin); keys.Scan(); {
		w.wiped.note(keys.Text())
	}
	cancel()
	running.Wait()
	ctx, cancel = context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	return errors.Join(err, end(ctx))
}

// connector returns what makes the worker's connections, or takes them from a pool of pgx.
func (w *worker) connector() (c driver.Connector, end func(), err error) {
	if !writesByPgx(w.name) {
		c, err = w.kind.connector(dsnOf(w.name), dial)
		return c, func() {}, err
	}
	c, pool, err := pgxPool(context.Background(), dsnOf(w.name), dial)
	if err != nil {
		return nil, nil, err
	}
	return c, pool.Close, nil
}

// dsnOf returns the DSN of the worker of a name, which ends in its number.
func dsnOf(name string) string {
	all := strings.Fields(os.Getenv("BELAY_CHAOS_DSN"))
	n, err := strconv.Atoi(strings.TrimPrefix(name, "w"))
	if err != nil || len(all) == 0 {
		return ""
	}
	return all[n%len(all)]
}

// configure reads what the test said.
func (w *worker) configure() (err error) {
	if w.seed, err = strconv.ParseUint(os.Getenv(seedName), 10, 64); err != nil {
		return err
	}
	if w.began, err = strconv.ParseInt(os.Getenv("BELAY_CHAOS_BEGAN"), 10, 64); err != nil {
		return err
	}
	w.pace, err = time.ParseDuration(os.Getenv("BELAY_CHAOS_PACE"))
	return err
}

// open makes the guard with all that services have. end closes it, as setup.md says.
func (w *worker) open(db *gorm.DB) (end func(context.Context) error, err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: strings.Split(os.Getenv("BELAY_CHAOS_REDIS"), ",")}, redislock.Config{})
	if err != nil {
		return nil, err
	}
	locker, err := lock.New(watchedEngine{engine, w.journal}, lock.Config{TTL: ttl, Logger: log})
	if err != nil {
		return nil, err
	}
	events, closeEvents, err := w.publisher(db, log)
	if err != nil {
		return nil, err
	}
	w.guard, err = guard.New(db, locker, guard.Config{
		Service: "chaos", Instance: w.name, Publisher: watchedPublisher{events, w.journal}, OnUnavailable: policyOf(w.name), Logger: log,
	})
	if err != nil {
		return nil, err
	}
	closeSide, err := w.openSide(db, locker, events, log)
	return func(ctx context.Context) error {
		return errors.Join(closeSide(ctx), w.guard.Close(ctx), closeEvents(ctx), locker.Close(ctx), engine.Close(ctx))
	}, err
}

// openSide makes what takes messages out and applies them, and the Guard of that and of payments. Transfers have none.
func (w *worker) openSide(db *gorm.DB, locker *lock.Locker, events notify.Publisher, log *slog.Logger) (end func(context.Context) error, err error) {
	if os.Getenv(transfersName) != "" {
		return func(context.Context) error { return nil }, nil
	}
	w.sideGuard, err = guard.New(db, locker, guard.Config{
		Service: "chaos", Instance: sideInstance(w.name), Name: "side", EndTimeout: callEnd,
		Publisher: watchedPublisher{patient{events}, w.journal}, OnUnavailable: policyOf(w.name), Logger: log,
	})
	if err != nil {
		return nil, err
	}
	p, err := startPost(w.name, db, w.sideGuard, os.Getenv("BELAY_CHAOS_AMQP"), os.Getenv(queueName), log)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return errors.Join(p.close(ctx), w.sideGuard.Close(ctx)) }, nil
}

// patient waits for the outbox longer than callEnd: it is no fault of the database if that is slow.
type patient struct{ notify.Publisher }

func (p patient) Publish(ctx context.Context, ev notify.Event) error {
	return p.Publisher.Publish(context.WithoutCancel(ctx), ev)
}

// publisher makes the way of events to the broker. Transfers have none.
func (w *worker) publisher(db *gorm.DB, log *slog.Logger) (p notify.Publisher, end func(context.Context) error, err error) {
	if os.Getenv(transfersName) != "" {
		return nowhere{}, func(context.Context) error { return nil }, nil
	}
	broker, err := rabbitmq.New(os.Getenv("BELAY_CHAOS_AMQP"), rabbitmq.Config{Timeout: time.Second, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	// Rows that a relay leased which was killed wait for three RelayTimeouts.
	box, err := outbox.New(db, outbox.Config{Service: "chaos", Instance: w.name, Relay: broker, RelayTimeout: time.Second, Logger: log})
	return box, func(ctx context.Context) error {
		err := box.Close(ctx)
		if err != nil && strings.Contains(err.Error(), "stay stored") { // what is left there the test relays
			err = nil
		}
		return errors.Join(err, broker.Close(ctx))
	}, err
}

// open opens a pool, and another one if the connection is cut or the database dead: gorm
// closes the pool then.
func open(kind database, c driver.Connector, idle int) (pool *sql.DB, db *gorm.DB, err error) {
	for until := time.Now().Add(30 * time.Second); ; linger(context.Background(), 100*time.Millisecond) {
		pool = sql.OpenDB(c)
		pool.SetMaxOpenConns(2 * callers)
		pool.SetMaxIdleConns(idle)
		pool.SetConnMaxIdleTime(maxIdle)
		if db, err = gorm.Open(kind.dialector(pool), &gorm.Config{Logger: logger.Discard}); err == nil {
			return pool, db, nil
		}
		_ = pool.Close()
		if time.Now().After(until) {
			return nil, nil, err
		}
	}
}

// idle is how many connections its pool keeps: none that pgx's pool does.
func (w *worker) idle() int {
	if writesByPgx(w.name) {
		return 0
	}
	return 2 * callers
}

// at is how long the workers have worked.
func (w *worker) at() time.Duration { return time.Duration(now() - w.began) }

// sample notes what this process has in use, until ctx ends.
func (w *worker) sample(ctx context.Context, p ports) error {
	for ctx.Err() == nil {
		s, err := takeSample(p)
		if err != nil {
			return err
		}
		w.journal.write(line{At: sampled, Sample: s})
		linger(ctx, sampleEach)
	}
	return nil
}

// read notes that a call has read its row.
func (w *worker) read(do string, version int64) {
	w.journal.write(line{At: loaded, Do: do, Version: version})
}

// call does one operation after the other until ctx ends.
func (w *worker) call(ctx context.Context, caller string) {
	for n := 0; ctx.Err() == nil; n++ {
		do := fmt.Sprintf("%s.%d", caller, n)
		r := draws(w.seed, do)
		t := draw(r, w.at(), do)
		switch {
		case t.serves:
			w.ask(ctx, t, do)
		case t.pays:
			w.pay(ctx, t, do)
		default:
			w.do(ctx, t, do)
		}
		linger(ctx, time.Duration(r.Int64N(int64(w.pace)))) // a refusal costs next to nothing
	}
}

// do does an operation by itself. After an error it waits for a moment.
func (w *worker) do(ctx context.Context, t task, do string) {
	w.journal.write(line{At: called, Do: do, Key: t.key, Also: t.also(), Kind: t.kind, Combine: t.change != nil})
	doing := context.WithValue(context.WithoutCancel(ctx), doKey{}, doing{do: do, key: t.key, begins: t.change != nil})
	version, err := w.run(doing, t, do)
	l := returnedBy(err)
	l.Do, l.Key, l.Version = do, t.key, version
	w.journal.write(l)
	if strings.HasPrefix(l.Result, failed) {
		linger(ctx, 50*time.Millisecond)
	}
}

// returnedBy returns the line of a call that returned err.
func returnedBy(err error) line {
	l := line{At: returned, Result: result(err)}
	if i, ok := errors.AsType[*guard.InterceptionError](err); ok {
		l.ID = i.Event.ID
	}
	return l
}

// operation makes the writes of a task. It takes its time before them, or after them, with
// the row locked.
func (w *worker) operation(t task, do string) guard.Op {
	return func(ctx context.Context, tx *gorm.DB) error {
		w.journal.write(line{At: begun, Do: do, Key: t.key})
		if !t.after {
			linger(ctx, t.takes)
		}
		err := t.write(ctx, tx, w, t, do)
		if t.after && err == nil {
			linger(ctx, t.takes)
		}
		return err
	}
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
	busy      = "busy"

	conflict    = "conflict" // and nothing said of the lock
	poor        = "poor"     // the operation's own error
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
		return busy
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
	case errors.Is(err, errPoor):
		return poor
	case isConflict(err):
		return conflict
	}
	return failed + err.Error()
}

func isConflict(err error) bool {
	_, ok := errors.AsType[*dbguard.ConflictError](err)
	return ok
}
