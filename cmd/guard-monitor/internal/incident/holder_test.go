package incident_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// holderEnv makes the test binary a process that inserts one order under a lock,
// so that a whole process can stand still. It stands in its transaction until it
// reads a line, and writes what it publishes.
const holderEnv = "BELAY_TEST_HOLDER"

type holderConfig struct {
	DSN, Key, No string
	Redis        []string
	TTL          time.Duration
}

func hold() int {
	var c holderConfig
	if err := json.Unmarshal([]byte(os.Getenv(holderEnv)), &c); err != nil {
		return failed(err)
	}
	db, err := gorm.Open(mysql.Open(c.DSN), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return failed(err)
	}
	in, err := newInstance("holder", db, c.Redis, c.TTL, writer{os.Stdout})
	if err != nil {
		return failed(err)
	}
	line := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(line)
	}()
	err = in.guard.Do(context.Background(), c.Key, func(ctx context.Context, tx *gorm.DB) error {
		fmt.Fprintln(os.Stdout, "stands")
		<-line
		return guard.Insert(&order{No: c.No}).Run(ctx, tx)
	})
	if err := errors.Join(in.close(), expect(err)); err != nil {
		return failed(err)
	}
	return 0
}

func expect(err error) error {
	if err == nil {
		return errors.New("the holder noticed nothing")
	}
	if errors.Is(err, guard.ErrLost) || errors.Is(err, guard.ErrIntercepted) {
		return nil
	}
	return fmt.Errorf("holder ended with: %w", err)
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// writer is a Publisher that writes a line of JSON.
type writer struct{ io.Writer }

func (w writer) Publish(_ context.Context, ev notify.Event) error {
	return json.NewEncoder(w.Writer).Encode(ev)
}

// startHolder starts such a process.
func startHolder(t *testing.T, c holderConfig) *testproc.Process {
	t.Helper()
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return testproc.Start(t, "the holder", testproc.Self(holderEnv+"="+string(config)))
}

// instance is a service instance.
type instance struct {
	guard  *guard.Guard
	locker *lock.Locker
	engine redislock.Engine
}

func newInstance(name string, db *gorm.DB, addrs []string, ttl time.Duration, p notify.Publisher) (*instance, error) {
	// A loss is to be found by the write that comes late, not by the server's report before it.
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: addrs}, redislock.Config{NoTracking: true})
	if err != nil {
		return nil, err
	}
	locker, err := lock.New(engine, lock.Config{TTL: ttl})
	if err != nil {
		return nil, errors.Join(err, engine.Close(context.Background()))
	}
	g, err := guard.New(db, locker, guard.Config{Service: "orders", Instance: name, Publisher: p})
	if err != nil {
		return nil, errors.Join(err, locker.Close(context.Background()), engine.Close(context.Background()))
	}
	return &instance{g, locker, engine}, nil
}

func (i *instance) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return errors.Join(i.guard.Close(ctx), i.locker.Close(ctx), i.engine.Close(context.Background()))
}

// order is what the instances write.
type order struct {
	ID       uint
	No       string `gorm:"size:64;uniqueIndex"`
	Instance string `gorm:"size:64"`
}

func (order) TableName() string { return "orders" }
