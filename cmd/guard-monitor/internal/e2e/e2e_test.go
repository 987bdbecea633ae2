// Package e2e runs the paper's experiment in miniature, with real servers and
// every instance a process of its own.
package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
	"github.com/belaygo/belay/once"
)

// stage is all that the cases share.
type stage struct {
	t       *testing.T
	cluster *cluster
	db      *gorm.DB
	dsn     string
	env     []string // of the instances
	monitor *process
	people  *people      // whom it tells
	events  *store.Store // its store
	amqp    string
	passed  int
}

func TestPaper(t *testing.T) {
	s := setUp(t)
	cases := []struct {
		name string
		run  func(*testing.T, *stage) string
	}{
		{"a: insert, lock lost in a failover", insertOverlaps},
		{"b: update, lock lost in a failover", updateOverlaps},
		{"c: insert, watchdog finds the loss first", watchdogFindsLoss},
		{"d: insert, somebody deletes the lock", lockDeleted},
		{"e: insert, somebody flushes the node", nodeFlushed},
		{"f: the same request again", repeatIsNoFailure},
		{"g: an HTTP request 100 times, instance and master killed", requestsAreServedOnce},
		{"h: Redis dead, the locks move to the database and back", redisIsLeft},
	}
	for _, c := range cases {
		t.Run(c.name[:1], func(t *testing.T) {
			s.t, s.cluster.t = t, t
			s.cluster.Stack(t, "heal")
			fmt.Printf("%s: %s\n", c.name, c.run(t, s))
			if !t.Failed() {
				s.passed++
			}
		})
	}
	s.t, s.cluster.t = t, t
	s.nothingElse()
	fmt.Printf("belay e2e: %d of %d cases as expected\n", s.passed, len(cases))
}

func setUp(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	path := filepath.Join(t.TempDir(), "monitor.db")
	s.monitor = start(t, "guard-monitor", s.env, build(t, "github.com/belaygo/belay/cmd/guard-monitor"),
		"-db", path, "-config", s.people.reachable(t, s.cluster.Addrs))
	testwait.Until(t, "the monitor has its queue", func() bool { return s.monitorIsReady(path) })
	return s
}

// newStage returns a stage without a monitor.
func newStage(t *testing.T) *stage {
	t.Helper()
	dsn, amqp := teststack.MySQL(t), teststack.AMQP(t)
	c := &cluster{teststack.StartCluster(t, "e2e"), t}
	s := &stage{
		t:       t,
		cluster: c,
		db:      testdb.OpenMySQL(t, dsn),
		dsn:     dsn,
		people:  new(people),
		amqp:    amqp,
		env: []string{
			"BELAY_REDIS_ADDRS=" + strings.Join(c.Addrs, ","),
			"BELAY_MYSQL_DSN=" + dsn,
			"BELAY_AMQP_URL=" + amqp,
		},
	}
	if err := s.db.AutoMigrate(&Order{}, &Stock{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(outbox.Migrate(context.Background(), s.db), once.Migrate(context.Background(), s.db)); err != nil {
		t.Fatal(err)
	}
	return s
}

// monitorIsReady opens the monitor's store once the monitor has made it, and
// reports whether its queue takes events.
func (s *stage) monitorIsReady(path string) bool {
	if s.events == nil {
		if len(s.monitor.Lines()) == 0 && !exists(path) {
			return false
		}
		events, err := store.Open(context.Background(), path)
		if err != nil {
			return false
		}
		s.events = events
		s.t.Cleanup(func() { events.Close() })
	}
	return s.publish("probe") == nil
}

// publish sends an event of the given service past everything but the broker.
func (s *stage) publish(service string) error {
	p, err := rabbitmq.New(s.amqp, rabbitmq.Config{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer p.Close(ctx)
	return p.Publish(ctx, notify.Event{
		ID: uuid.NewString(), Service: service, Instance: "test", Verdict: notify.VerdictDegraded, Outcome: notify.OutcomeUnknown,
		CaughtAt: time.Now(), Count: 1,
	})
}

// start starts an instance.
func (s *stage) start(name string, args ...string) *process {
	s.t.Helper()
	return start(s.t, name, slices.Concat(s.env, []string{asInstance + "=1"}), os.Args[0], append([]string{"-name", name}, args...)...)
}

// loseLock has a shard's master die with the lock of an instance that stands
// in its transaction. It returns the shard as it was, and the lock's owner.
func (s *stage) loseLock(key string, start func() *process) (a *process, at shard, owner string) {
	s.t.Helper()
	at = s.cluster.shardOf(key)
	s.cluster.detach(at)
	a = start()
	a.await("stands")
	if owner = s.cluster.owner(at.master, key); owner == "" {
		s.t.Fatalf("the lock of %q is not on %s", key, at.master)
	}
	s.cluster.failOver(at)
	if still := s.cluster.owner(at.replica, key); still != "" {
		s.t.Fatalf("the promoted node has the lock of %q", key)
	}
	return a, at, owner
}

func insertOverlaps(t *testing.T, s *stage) string {
	const key, no = "order:a", "a"
	a, at, owner := s.loseLock(key, func() *process { return s.start("A", "-hold", "-key", key, "-order", no) })
	b := s.start("B", "-key", key, "-order", no, "-wait", "30s")
	s.want(b.await("ended"), "done")
	b.finish()
	a.Proceed()
	s.want(a.await("ended"), "intercepted")
	a.finish()

	ev := s.event(key, notify.VerdictOverlap, notify.OutcomeRefused)
	s.wantLock(ev, at, owner)
	rows := s.orders(no, "B")
	return s.summary(ev, rows) + s.explained(ev)
}

func updateOverlaps(t *testing.T, s *stage) string {
	const key = "sku:1"
	if err := s.db.Create(&Stock{ID: 1, Left: 10}).Error; err != nil {
		t.Fatal(err)
	}
	update := []string{"-do", "update", "-key", key, "-stock", "1"}
	a, at, owner := s.loseLock(key, func() *process { return s.start("A", append(update, "-hold")...) })
	b := s.start("B", append(update, "-wait", "30s")...)
	s.want(b.await("ended"), "done")
	b.finish()
	a.Proceed()
	s.want(a.await("ended"), "intercepted")
	a.finish()

	ev := s.event(key, notify.VerdictOverlap, notify.OutcomeRefused)
	s.wantLock(ev, at, owner)
	if ev.Versions == nil || *ev.Versions != (notify.Versions{Expected: 1, Found: 2}) {
		t.Errorf("versions are %+v, want 1 expected and 2 found", ev.Versions)
	}
	var stock Stock
	if err := s.db.Take(&stock, 1).Error; err != nil {
		t.Fatal(err)
	}
	if stock.Left != 9 || stock.Version != 2 {
		t.Errorf("stock is %+v, want one item sold once", stock)
	}
	return s.summary(ev, 1)
}

func watchdogFindsLoss(t *testing.T, s *stage) string {
	const key, no = "order:c", "c"
	a, at, owner := s.loseLock(key, func() *process {
		return s.start("A", "-hold", "-ttl", "15s", "-key", key, "-order", no)
	})
	b := s.start("B", "-key", key, "-order", no, "-wait", "30s")
	s.want(b.await("ended"), "done")
	b.finish()
	s.want(a.await("ended"), "lost") // without being told to proceed
	a.finish()

	ev := s.event(key, notify.VerdictLost, notify.OutcomeRolledBack)
	if ev.Owner != owner || ev.Place != (notify.Place{Node: at.master, Slot: at.slot}) || ev.Token == 0 {
		t.Errorf("event tells of owner %s, token %d, %+v; want %s on %s", ev.Owner, ev.Token, ev.Place, owner, at.master)
	}
	return s.summary(ev, s.orders(no, "B"))
}

func repeatIsNoFailure(t *testing.T, s *stage) string {
	const key, no = "order:f", "f"
	first := s.start("A", "-key", key, "-order", no)
	s.want(first.await("ended"), "done")
	first.finish()
	again := s.start("B", "-key", key, "-order", no)
	s.want(again.await("ended"), "duplicate")
	again.finish()

	s.drained()
	if got := s.reported(key); len(got) != 0 {
		t.Errorf("events of a repeat: %+v", got)
	}
	return fmt.Sprintf("verdict duplicate, %d row, 0 events", s.orders(no, "A"))
}
