package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/switchlock"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// asInstance is the variable that makes this program an instance.
const asInstance = "BELAY_TEST_AS_INSTANCE"

func TestMain(m *testing.M) {
	if os.Getenv(asInstance) == "" {
		os.Exit(m.Run())
	}
	var i instance
	flag.StringVar(&i.name, "name", "", "name of the instance")
	flag.StringVar(&i.do, "do", "insert", "insert, update, serve or sell")
	flag.StringVar(&i.key, "key", "", "key to lock")
	flag.StringVar(&i.order, "order", "", "number of the order to insert")
	flag.Int64Var(&i.stock, "stock", 0, "id of the stock row to update")
	flag.BoolVar(&i.hold, "hold", false, "wait for a line inside the transaction")
	flag.DurationVar(&i.ttl, "ttl", 30*time.Second, "ttl of the lock")
	flag.DurationVar(&i.wait, "wait", 0, "how long to wait for the lock")
	flag.Parse()
	if err := i.run(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "instance %s: %v\n", i.name, err)
		os.Exit(1)
	}
}

// Order is what the insert cases write.
type Order struct {
	ID       uint
	No       string `gorm:"size:64;uniqueIndex"`
	Instance string `gorm:"size:64"`
}

// Stock is what the update case writes.
type Stock struct {
	ID      int64
	Left    int
	Version dbguard.Version
}

// instance is one service instance, a process of its own. It does one operation
// under guard.Do and says on standard output, a JSON object a line, how far it is.
// With hold it waits for a line on standard input between the begin of its
// transaction and its first write.
type instance struct {
	name, do, key, order string
	stock                int64
	hold                 bool
	ttl, wait            time.Duration
}

// run sets up what a service has, does the operation, and closes everything in
// the order that guard.New names.
func (i *instance) run(ctx context.Context) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("instance", i.name)
	db, err := gorm.Open(mysql.Open(os.Getenv("BELAY_MYSQL_DSN")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	engine, err := i.open(log)
	if err != nil {
		return err
	}
	defer engine.Close(context.Background())
	locker, err := lock.New(engine, lock.Config{TTL: i.ttl, Logger: log})
	if err != nil {
		return err
	}
	broker, err := rabbitmq.New(os.Getenv("BELAY_AMQP_URL"), rabbitmq.Config{Logger: log})
	if err != nil {
		return err
	}
	forward := outbox.Config{Relay: broker, Logger: log}
	i.heartbeats(&forward, engine)
	box, err := outbox.New(db, forward)
	if err != nil {
		return err
	}
	cfg := guard.Config{Service: "e2e", Instance: i.name, Publisher: box, Logger: log}
	if i.do == "sell" {
		cfg.OnUnavailable = guard.DBOnly
	}
	g, err := guard.New(db, locker, cfg)
	if err != nil {
		return err
	}

	switch e := engine.(type) {
	case switchlock.Engine:
		err = i.sell(ctx, g, locker, e)
	default:
		if i.do == "serve" {
			return i.serve(g)
		}
		say(report{State: "ended", Result: outcome(g.Do(ctx, i.key, i.op(), guard.Wait(i.wait)))})
	}
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return errors.Join(g.Close(ctx), locker.Close(ctx), box.Close(ctx), broker.Close(ctx))
}

// open returns what keeps the locks.
func (i *instance) open(log *slog.Logger) (lockengine.Engine, error) {
	if i.do == "sell" {
		return openSwitch(log)
	}
	// The second layer is to find the losses, not the server's report before it.
	return redislock.Open(&redis.UniversalOptions{Addrs: strings.Split(os.Getenv("BELAY_REDIS_ADDRS"), ",")}, redislock.Config{NoTracking: true})
}

func (i *instance) op() guard.Op {
	return func(ctx context.Context, tx *gorm.DB) error {
		say(report{State: "begun"})
		if i.do == "update" {
			return guard.Update(&Stock{ID: i.stock}, func(s *Stock) error {
				s.Left--
				return i.stand(ctx)
			}).Run(ctx, tx)
		}
		if err := i.stand(ctx); err != nil {
			return err
		}
		return guard.Insert(&Order{No: i.order, Instance: i.name}).Run(ctx, tx)
	}
}

// stand waits for a line, or for the end of ctx.
func (i *instance) stand(ctx context.Context) error {
	if !i.hold {
		return nil
	}
	line := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(line)
	}()
	say(report{State: "stands"})
	select {
	case <-line:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// report is a line of output.
type report struct {
	State  string    `json:"state"` // begun, stands, ended
	Result string    `json:"result,omitempty"`
	At     time.Time `json:"at"`
}

func say(r report) {
	r.At = time.Now()
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		panic(err)
	}
}

// outcome is the result of Do in a word.
func outcome(err error) string {
	var i *guard.InterceptionError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &i):
		return "intercepted " + i.Event.ID
	case errors.Is(err, guard.ErrDuplicate):
		return "duplicate"
	case errors.Is(err, guard.ErrLost):
		return "lost"
	}
	return "error: " + err.Error()
}
