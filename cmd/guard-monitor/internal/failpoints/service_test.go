//go:build failpoints

package failpoints_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// Order is what insert and custom insert.
type Order struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

// Stock is what update and custom update.
type Stock struct {
	ID      int64
	Left    int
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// Note is what custom inserts in raw SQL.
type Note struct {
	ID   uint
	Line string `gorm:"size:64"`
}

const (
	orderNo = "no-1"
	stockID = 1
	otherID = 2 // of the stock that a transfer raises

	crewSize = 4
	inStock  = 10 // at first
)

// serviceRole is an instance of a service. It says "ended RESULT" for each operation.
type serviceRole struct {
	DSN, BoxDSN, AMQP string // BoxDSN leads to the same database
	Redis             []string
	Key, Other        string // Other is the second one
	Do                operation
	TTL               time.Duration
	Runs              int  // of the operation, one after the other; 0 = until the end of the process
	Callers           int  // that do that
	Remember          bool // what is done, in Redis
	Forget            bool // a request that is done, in Redis
	DBOnly            bool // without the lock if Redis does not answer
	Hold              bool // say "stands" before the first write, and wait for a line
	Carry             bool // wait until the outbox is empty, close everything, and say "closed"
	Call              callRole
}

const (
	endTimeout   = time.Second
	relayTimeout = 700 * time.Millisecond // a relay's lease is three times as long
)

func (r *serviceRole) run(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, err := open(r.DSN)
	if err != nil {
		return err
	}
	box, err := open(r.BoxDSN)
	if err != nil {
		return err
	}
	// The second layer is to find the losses, not the server's report before it.
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: r.Redis}, redislock.Config{NoTracking: true})
	if err != nil {
		return err
	}
	locker, err := lock.New(engine, lock.Config{TTL: r.TTL, Logger: log})
	if err != nil {
		return err
	}
	broker, err := rabbitmq.New(r.AMQP, rabbitmq.Config{Timeout: relayTimeout, Logger: log})
	if err != nil {
		return err
	}
	events, err := outbox.New(box, outbox.Config{Relay: broker, RelayTimeout: relayTimeout, Logger: log})
	if err != nil {
		return err
	}
	cfg := guard.Config{Service: "failpoints", EndTimeout: endTimeout, Publisher: events, Logger: log, Observer: waits{}}
	if r.DBOnly {
		cfg.OnUnavailable = guard.DBOnly
	}
	g, err := guard.New(db, locker, cfg)
	if err != nil {
		return err
	}

	var callers sync.WaitGroup
	for range max(r.Callers, 1) {
		callers.Go(func() {
			switch r.Do {
			case crew, requests:
				r.gather(ctx, g, locker)
			case request, refusal:
				r.serve(ctx, g)
			case payment:
				r.pay(ctx, g, box)
			default:
				r.call(ctx, g)
			}
		})
	}
	callers.Wait()
	if !r.Carry {
		select {} // its relay goes on
	}
	if err := emptied(ctx, box); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = errors.Join(g.Close(ctx), events.Close(ctx), broker.Close(ctx), locker.Close(ctx), engine.Close(ctx))
	if err == nil {
		fmt.Println("closed")
	}
	return err
}

func (r *serviceRole) call(ctx context.Context, g *guard.Guard) {
	opts := []guard.Option{guard.Protects(r.protected()...)}
	if r.Do == transfer {
		opts = append(opts, guard.Also(r.Other, &Stock{ID: otherID}))
	}
	if !r.DBOnly {
		opts = append(opts, guard.Wait(patience/2))
	}
	if r.Remember {
		opts = append(opts, guard.Remember(time.Minute))
	}
	for n := 0; n < r.Runs || r.Runs == 0; n++ {
		err := g.Do(ctx, r.Key, r.op, opts...)
		fmt.Println("ended", outcome(err))
	}
}

func (r *serviceRole) protected() []any {
	if r.Do == update || r.Do == transfer || r.Do == sending {
		return nil
	}
	return []any{&Order{No: orderNo}} // so that PostgreSQL reads it at the begin
}

// op is the operation. With Hold it stands between the begin of the transaction and the
// first write.
func (r *serviceRole) op(ctx context.Context, tx *gorm.DB) error {
	sell := guard.Update(&Stock{ID: stockID, Version: 1}, func(s *Stock) error {
		s.Left--
		return r.stand(ctx)
	})
	switch r.Do {
	case update:
		return sell.Run(ctx, tx)
	case sending:
		return guard.All(sell, guard.Send(guard.Message{Topic: "sold", Body: []byte(r.Key)})).Run(ctx, tx)
	case transfer:
		if err := sell.Run(ctx, tx); err != nil {
			return err
		}
		return guard.Update(&Stock{ID: otherID, Version: 1}, func(s *Stock) error { s.Left++; return nil }).Run(ctx, tx)
	}
	if err := r.stand(ctx); err != nil {
		return err
	}
	change := guard.Insert(&Order{No: orderNo})
	if r.Do == custom {
		change = guard.All(change, guard.Update(&Stock{ID: stockID}, func(s *Stock) error { s.Left--; return nil }))
	}
	if err := change.Run(ctx, tx); err != nil || r.Do == insert {
		return err
	}
	return tx.Exec("INSERT INTO notes (line) VALUES (?)", orderNo).Error
}

// stand waits for a line, or for the end of ctx.
func (r *serviceRole) stand(ctx context.Context) error {
	if !r.Hold {
		return nil
	}
	line := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(line)
	}()
	fmt.Println("stands")
	select {
	case <-line:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// outcome is the result of Do in a word, and the id of its event.
func outcome(err error) string {
	var i *guard.InterceptionError
	var conflict *dbguard.ConflictError
	pending, _ := errors.AsType[*guard.PendingError](err)
	switch {
	case err == nil:
		return "done"
	case pending != nil && pending.Undecided:
		return "undecided"
	case pending != nil:
		return "pending: " + err.Error()
	case errors.As(err, &i):
		return "intercepted " + i.Event.ID
	case errors.Is(err, guard.ErrDuplicate), errors.Is(err, guard.ErrStale):
		return "repeat"
	case errors.Is(err, guard.ErrLost):
		return "lost"
	case errors.Is(err, guard.ErrUnknown):
		return "unknown"
	case errors.Is(err, guard.ErrBusy) && errors.As(err, &conflict):
		return "overtaken"
	}
	return "error: " + err.Error()
}

// emptied waits until all events of the outbox have been published and deleted, also
// those that a dead relay had leased.
func emptied(ctx context.Context, db *gorm.DB) error {
	for {
		var left int64
		if err := db.Table("belay_outbox").Count(&left).Error; err != nil || left == 0 {
			return err
		}
		if err := wait.Sleep(ctx, 20*time.Millisecond, nil); err != nil {
			return err
		}
	}
}

// open opens a database for a process that is not a test.
func open(dsn string) (*gorm.DB, error) {
	dialector := mysql.Open(dsn)
	if strings.HasPrefix(dsn, "postgres") {
		dialector = postgres.Open(dsn)
	}
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return db, nil
}
