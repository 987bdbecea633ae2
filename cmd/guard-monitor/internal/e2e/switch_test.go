package e2e_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
	"github.com/belaygo/belay/notify"
)

// record is the name of the record of a switch.
const record = "e2e"

// Times of the instances that can switch: a switch takes 5 seconds.
const (
	switchLease = time.Second
	switchTTL   = 3 * time.Second
)

// openLocks returns the pool of the locks, and the record in it.
func openLocks(dsn string) (*sql.DB, switchlock.Source, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, nil, err
	}
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = 5*time.Second, 5*time.Second, 5*time.Second
	pool, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		return nil, nil, err
	}
	pool.SetMaxOpenConns(4)
	source, err := sqllock.NewSource(pool, sqllock.MySQL, record)
	return pool, source, err
}

// openSwitch returns an engine that keeps locks in a Redis server, or in the database.
func openSwitch(log *slog.Logger) (switchlock.Engine, error) {
	pool, source, err := openLocks(os.Getenv("BELAY_MYSQL_DSN"))
	if err != nil {
		return nil, err
	}
	table, err1 := sqllock.New(pool, sqllock.MySQL, sqllock.Config{Logger: log})
	redis, err2 := redislock.Open(&redis.UniversalOptions{Addrs: []string{os.Getenv(switchRedis)}}, redislock.Config{})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return switchlock.New(switchlock.Config{
		Source: source, Engines: map[string]lockengine.Engine{"redis": redis, "sql": table}, First: "redis",
		Lease: switchLease, TTL: switchTTL, Logger: log,
	})
}

// soldKey is the key of the stock that is sold.
const soldKey = "sku:8"

// switchRedis is the variable with the address of the Redis server that can be left.
const switchRedis = "BELAY_TEST_SWITCH_REDIS"

// sell sells one of a stock again and again, until there is a line on standard input. It
// says how many it has sold, and where locks are granted whenever that changes.
func (i *instance) sell(ctx context.Context, g *guard.Guard, l *lock.Locker, e switchlock.Engine) error {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		cancel()
	}()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		i.watchLocks(ctx, l, e)
	}()
	sold := 0
	for ctx.Err() == nil {
		err := g.Do(context.WithoutCancel(ctx), i.key, guard.Update(&Stock{ID: i.stock}, func(s *Stock) error {
			s.Left--
			return nil
		}).Run, guard.Wait(i.wait))
		switch _, intercepted := errors.AsType[*guard.InterceptionError](err); {
		case err == nil:
			sold++
		case intercepted: // it had the lock when Redis died, and another went on without
		case errors.Is(err, guard.ErrStale), errors.Is(err, guard.ErrBusy), errors.Is(err, guard.ErrUnavailable), errors.Is(err, guard.ErrLost):
		default:
			return err
		}
	}
	<-watched
	say(report{State: "sold", Result: strconv.Itoa(sold)})
	return nil
}

// watchLocks says where a lock of this instance's own is granted, or that it is nowhere.
func (i *instance) watchLocks(ctx context.Context, l *lock.Locker, e switchlock.Engine) {
	said := ""
	for ; ctx.Err() == nil; <-time.After(50 * time.Millisecond) {
		where := "nowhere"
		if lease, err := l.TryAcquire(ctx, "probe:"+i.name); err == nil {
			where = "both"
			if s := e.State(); s.Settled {
				where = s.To
			}
			_ = lease.Release(context.WithoutCancel(ctx))
		}
		if where != said {
			said = where
			say(report{State: "locks", Result: where})
		}
	}
}

// locksIn waits until an instance says that locks are granted there, and only there.
func locksIn(t *testing.T, p *process, where string) {
	t.Helper()
	testwait.Until(t, p.Name()+" has its locks in "+where, func() bool {
		if p.HasExited() {
			t.Fatalf("%s has ended: %v", p.Name(), p.Err())
		}
		all := locksOf(p)
		return len(all) > 0 && all[len(all)-1].Result == where
	})
}

// locksOf returns what an instance has said of where locks are granted.
func locksOf(p *process) (all []report) {
	for _, line := range p.Lines() {
		if r := parse(line); r.State == "locks" {
			all = append(all, r)
		}
	}
	return all
}

// backAfter returns how long after a time the last of some instances was granted a lock
// again.
func backAfter(t *testing.T, from time.Time, instances []*process) (took time.Duration) {
	t.Helper()
	for _, p := range instances {
		granted := slices.IndexFunc(locksOf(p), func(r report) bool { return r.At.After(from) && r.Result != "nowhere" })
		if granted < 0 {
			t.Fatalf("%s was granted no lock", p.Name())
		}
		took = max(took, locksOf(p)[granted].At.Sub(from))
	}
	return took
}

// redisIsLeft: Redis dies, and two instances sell on, without a lock. Then somebody presses
// the key: the locks are in the database until Redis is back.
func redisIsLeft(t *testing.T, s *stage) string {
	const stock, all = 8, 1_000_000
	if err := s.db.Create(&Stock{ID: stock, Left: all}).Error; err != nil {
		t.Fatal(err)
	}
	pool, source, err := openLocks(s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	if err := sqllock.Migrate(t.Context(), pool, sqllock.MySQL); err != nil {
		t.Fatal(err)
	}
	server := teststack.StartRedis(t, teststack.Volatile)
	s.env = append(s.env, switchRedis+"="+server.Addr)
	command := build(t, "github.com/belaygo/belay/cmd/belay-switch")

	sell := []string{"-do", "sell", "-key", soldKey, "-stock", strconv.Itoa(stock), "-ttl", switchTTL.String(), "-wait", "1s"}
	sellers := []*process{s.start("A", sell...), s.start("B", sell...)}
	each := func(where string) {
		t.Helper()
		for _, p := range sellers {
			locksIn(t, p, where)
		}
	}
	each("redis")
	s.sellsOn(stock)

	server.Kill()
	each("nowhere")
	s.sellsOn(stock)
	outages := func() (begun, ended map[string]int) {
		begun, ended = make(map[string]int), make(map[string]int)
		for _, ev := range s.reported(soldKey) {
			switch {
			case ev.Verdict != notify.VerdictDegraded:
			case ev.Outcome == notify.OutcomeUnknown: // of what runs from then on
				begun[ev.Instance]++
			default:
				ended[ev.Instance]++
			}
		}
		return begun, ended
	}
	once := map[string]int{"A": 1, "B": 1}
	testwait.Until(t, "both have said that an outage begins", func() bool { begun, _ := outages(); return maps.Equal(begun, once) })
	if _, ended := outages(); len(ended) > 0 {
		t.Errorf("outages that have ended while Redis is dead: %v", ended)
	}

	pressed := time.Now()
	s.press(t, command, "sql", func() { s.sellsOn(stock) })
	each("sql")
	took := backAfter(t, pressed, sellers)
	r, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if took > r.Cross+2*time.Second {
		t.Errorf("locks were back after %v, want at most 2 s more than a switch, which is %v", took, r.Cross)
	}
	testwait.Until(t, "both have said that the outage has ended", func() bool { _, ended := outages(); return maps.Equal(ended, once) })
	s.shown("sql")
	s.sellsOn(stock)

	server.Start()
	s.press(t, command, "redis", func() {})
	each("redis")
	s.sellsOn(stock)

	sold := 0
	for _, p := range sellers {
		p.Proceed()
		n, err := strconv.Atoi(p.await("sold"))
		if err != nil {
			t.Fatal(err)
		}
		sold += n
		p.finish()
	}
	if left := s.left(stock); left != all-sold {
		t.Errorf("%d of the stock are gone, %d were sold", all-left, sold)
	}
	s.drained()
	if begun, ended := outages(); !maps.Equal(begun, once) || !maps.Equal(ended, once) {
		t.Errorf("outages that began: %v, and that ended: %v; want one of each in either instance", begun, ended)
	}
	return fmt.Sprintf("%d sold, none twice; locks back after %.1f s, W is %v; 1 outage in each of 2 instances", sold, took.Seconds(), r.Cross)
}

// press has the locks move to an engine, as an operator does. meanwhile is called while they
// move.
func (s *stage) press(t *testing.T, command, to string, meanwhile func()) {
	t.Helper()
	cmd := exec.Command(command, "-record", record, "-by", "alice", "to", to)
	cmd.Env = append(os.Environ(), "BELAY_SWITCH_DSN="+s.dsn+"&timeout=5s&readTimeout=5s&writeTimeout=5s")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("belay-switch: %v\n%s", err, out.String())
	}
}

// sellsOn waits until more of a stock has been sold.
func (s *stage) sellsOn(stock int) {
	s.t.Helper()
	before := s.left(stock)
	testwait.Until(s.t, "more is sold", func() bool { return s.left(stock) < before })
}

func (s *stage) left(stock int) int {
	s.t.Helper()
	var row Stock
	if err := s.db.Take(&row, stock).Error; err != nil && !errors.Is(err, gorm.ErrRecordNotFound) {
		s.t.Fatal(err)
	}
	return row.Left
}
