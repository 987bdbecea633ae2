package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// TestDBOnlyWithMasterKilled: while a shard has no master, its operations go on
// by the database alone, and the others as ever.
func TestDBOnlyWithMasterKilled(t *testing.T) {
	t.Parallel()
	cluster := teststack.StartCluster(t, "dbonly")
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
	e := &env{t: t, db: db, Guard: guardtest.New(t, db)}
	e.create(&Stock{ID: 1, Left: 9})
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: cluster.Addrs}, redislock.Config{})
	wantNil(t, err)
	defer engine.Close(bg)
	locker, err := lock.New(engine, lock.Config{TTL: 2 * time.Second})
	wantNil(t, err)
	defer locker.Close(bg)
	g, err := guard.New(db, locker, guard.Config{Service: "s", Publisher: &e.Events, OnUnavailable: guard.DBOnly})
	wantNil(t, err)
	defer g.Close(bg)

	wantNil(t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}), guard.Wait(time.Minute)))
	master := engine.Locate("sku:1").Node
	if engine.Locate("order:a").Node == master {
		t.Fatalf("both keys are on %s", master)
	}
	replicas := e.replicas(cluster)
	for _, node := range replicas { // nobody takes its place
		cluster.Stack(t, "pause", node)
	}
	cluster.Stack(t, "kill", cluster.Node(t, master))

	wantNil(t, g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)))
	wantIs(t, g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1, Version: 1}, take)), guard.ErrStale)
	wantIs(t, g.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
		return tx.Model(&Stock{}).Where("id = ?", 1).Update("left", 0).Error
	}), guard.ErrUnavailable)
	begin := e.wantEvent(notify.VerdictDegraded, notify.OutcomeUnknown, "sku:1")
	if begin.Place.Node != master || begin.Count != 1 {
		t.Errorf("event is %+v, want one of %s", begin, master)
	}
	wantIs(t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})), guard.ErrDuplicate)
	wantMetrics(t, g, map[string]float64{"without_lock_total": 3, "degraded": 1})

	for _, node := range replicas {
		cluster.Stack(t, "resume", node)
	}
	testwait.Until(t, "the replica takes over", func() bool { return len(e.Events.All()) == 2 })
	end := e.Events.All()[1]
	if end.Verdict != notify.VerdictDegraded || end.Outcome != notify.OutcomeCommitted || end.Count != 1 || end.Place.Node != master {
		t.Errorf("event is %+v, want the end of the outage of %s after one operation", end, master)
	}
	wantNil(t, g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.Wait(time.Minute)))
	wantMetrics(t, g, map[string]float64{"without_lock_total": 3, "degraded": 0})
	if s := e.stock(1); s.Left != 7 || s.Version != 3 {
		t.Errorf("stock is %+v, want 7 left at version 3", s)
	}
	if events := e.Events.All(); len(events) != 2 {
		t.Errorf("%d events, want 2: %+v", len(events), events)
	}
}

// replicas returns the names of a cluster's replicas.
func (e *env) replicas(c *teststack.Cluster) (names []string) {
	e.t.Helper()
	for _, addr := range c.Addrs {
		client := redis.NewClient(&redis.Options{Addr: addr})
		role, err := client.Do(bg, "ROLE").Slice()
		wantNil(e.t, err)
		wantNil(e.t, client.Close())
		if role[0] == "slave" {
			names = append(names, c.Node(e.t, addr))
		}
	}
	return names
}
