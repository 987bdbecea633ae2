package web_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// run runs a part until the test ends.
func run(tb testing.TB, part func(context.Context) error) {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = part(ctx) }) // returns the error of ctx
	tb.Cleanup(func() { stop(); wg.Wait() })
}

// receive brings what is published to the broker into the store of s.
func (s *site) receive(tb testing.TB, broker string, taken func(notify.Event) error) {
	tb.Helper()
	mon, err := monitor.New(tb.Context(), monitor.Config{Store: s.store})
	if err != nil {
		tb.Fatal(err)
	}
	consumer, err := intake.New(broker, intake.Config{Prefetch: 10})
	if err != nil {
		tb.Fatal(err)
	}
	run(tb, func(ctx context.Context) error {
		return consumer.Run(ctx, func(ctx context.Context, ev notify.Event, raw []byte, sender string) error {
			if err := taken(ev); err != nil {
				return err
			}
			return mon.Ingest(ctx, ev, raw, sender)
		})
	})
	testwait.Until(tb, "the queue is read", func() bool { return consumer.Err() == nil })
}

func anything(notify.Event) error { return nil }

func newPublisher(tb testing.TB, broker string) rabbitmq.Publisher {
	tb.Helper()
	p, err := rabbitmq.New(broker, rabbitmq.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

type order struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func (order) TableName() string { return "orders" }

// A lock that a failover loses, the write that the database then refuses, the
// event, and its explanation: all of it comes to a page that was open and calm
// before, and is not loaded again.
func TestBrowserExplainsAFailover(t *testing.T) {
	t.Parallel()
	const key = "order:failover"
	cluster, broker := teststack.StartCluster(t, "web"), teststack.AMQP(t)
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	if err := db.AutoMigrate(&order{}); err != nil {
		t.Fatal(err)
	}
	watcher := new(lateWatcher)
	s := newSite(t, func(c *web.Config) { c.Every, c.Clusters = 50*time.Millisecond, watcher })
	watcher.follow(t, s, cluster.Addrs)
	s.receive(t, broker, anything)
	srv := s.server(t)
	publisher := newPublisher(t, broker)
	a, b := newInstance(t, "orders-a", db, cluster.Addrs, publisher), newInstance(t, "orders-b", db, cluster.Addrs, publisher)
	sh := watcher.shard(t, key)

	tab := browse(t)
	tab.run(chromedp.Navigate(srv.URL + "/"))
	tab.shows("All is calm")
	tab.until(`document.getElementById("live").classList.contains("on") && (window.marked = 42)`)

	cluster.Stack(t, "pause", cluster.Node(t, sh.Replicas[0]))
	on(t, sh.Master, "CLIENT", "KILL", "TYPE", "replica")
	stands, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- a.Do(context.Background(), key, func(ctx context.Context, tx *gorm.DB) error {
			close(stands)
			<-goOn
			return guard.Insert(&order{No: key}).Run(ctx, tx)
		})
	}()
	release := sync.OnceFunc(func() { close(goOn) })
	defer release() // also when the test gives up
	<-stands
	cluster.Stack(t, "kill", cluster.Node(t, sh.Master))
	cluster.Stack(t, "resume", cluster.Node(t, sh.Replicas[0]))
	if err := b.Apply(context.Background(), key, guard.Insert(&order{No: key}), guard.Wait(patience)); err != nil {
		t.Fatalf("the other instance: %v", err)
	}
	release()
	if err := <-done; !errors.Is(err, guard.ErrIntercepted) {
		t.Fatalf("Do: %v, want an interception", err)
	}

	tab.shows("1 open incident")
	tab.shows("Failover · orders")
	tab.shows("Another Redis node took over, without the lock.")
	tab.shows(sh.Replicas[0] + " took over the slots " + sh.Name + " from " + sh.Master)
	tab.until(`window.marked === 42`)
	tab.shot("real-failover-overview")
	tab.run(chromedp.Click("#open h3 a"))
	tab.until(`location.pathname.startsWith("/incidents/")`)
	tab.shows(`two callers wrote under key "` + key + `" at once`)
	tab.shows("before the event")
	tab.shot("real-failover-incident")
	tab.run(chromedp.Click(".language"))
	tab.shows(sh.Replicas[0] + " 从 " + sh.Master + " 接管了槽")
	if english := eval[string](tab, `[...document.querySelectorAll("#evidence [lang=en]")].map(e => e.textContent).join()`); english != "" {
		t.Errorf("the Chinese page has evidence in English: %s", english)
	}
	tab.shot("real-failover-incident-zh")
}

// lateWatcher is a watcher that is made after the site, whose store it fills.
type lateWatcher struct {
	mu      sync.Mutex
	watcher *watch.Watcher
}

func (l *lateWatcher) Clusters() []watch.Cluster {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watcher == nil {
		return nil
	}
	return l.watcher.Clusters()
}

func (l *lateWatcher) follow(tb testing.TB, s *site, addrs []string) {
	tb.Helper()
	w := watch.New(watch.Config{Targets: []watch.Target{{Name: "main", Addrs: addrs}}, Record: s.store.AddEntries})
	l.mu.Lock()
	l.watcher = w
	l.mu.Unlock()
	run(tb, w.Run)
	tracker := incident.NewTracker(incident.Config{Store: s.store, Locator: w, Ready: w.Ready(), Every: 200 * time.Millisecond})
	run(tb, tracker.Run)
	<-w.Ready()
}

// shard waits until the whole cluster is well and returns the shard of key.
func (l *lateWatcher) shard(tb testing.TB, key string) (found watch.Shard) {
	tb.Helper()
	testwait.Until(tb, "the shard of "+key+" is whole", func() bool {
		c := l.Clusters()[0]
		for _, n := range c.Nodes {
			if !n.Up || n.Role == "replica" && !n.LinkUp {
				return false
			}
		}
		if len(c.Nodes) < 6 {
			return false
		}
		slot, err := on(tb, c.Nodes[0].Addr, "CLUSTER", "KEYSLOT", key).Int()
		if err != nil {
			return false
		}
		for _, sh := range c.Shards {
			if watch.InShard(sh.Name, slot) && len(sh.Replicas) == 1 {
				found = sh
				return true
			}
		}
		return false
	})
	return found
}

func on(tb testing.TB, addr string, args ...any) *redis.Cmd {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DisableIdentity: true})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := c.Do(ctx, args...)
	if err := cmd.Err(); err != nil && !strings.Contains(err.Error(), "No such client") {
		tb.Fatalf("%v on %s: %v", args, addr, err)
	}
	return cmd
}

// lockTTL leaves a busy machine 40 s until a renewal finds that the lock is lost.
const lockTTL = 2 * time.Minute

func newInstance(tb testing.TB, name string, db *gorm.DB, addrs []string, p notify.Publisher) *guard.Guard {
	tb.Helper()
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: addrs}, redislock.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	locker, err := lock.New(engine, lock.Config{TTL: lockTTL})
	if err != nil {
		tb.Fatal(err)
	}
	g, err := guard.New(db, locker, guard.Config{Service: "orders", Instance: name, Publisher: p})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(g.Close(ctx), locker.Close(ctx), engine.Close(context.Background())); err != nil {
			tb.Error(err)
		}
	})
	return g
}
