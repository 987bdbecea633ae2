package watch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// recorder keeps entries.
type recorder struct {
	mu      sync.Mutex
	entries []watch.Entry
}

func (r *recorder) record(_ context.Context, entries []watch.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, entries...)
	return nil
}

func (r *recorder) all() []watch.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

// find returns the first entry that fits.
func (r *recorder) find(fits func(watch.Entry) bool) (watch.Entry, bool) {
	for _, e := range r.all() {
		if fits(e) {
			return e, true
		}
	}
	return watch.Entry{}, false
}

// await waits for an entry of the kind on the node.
func (r *recorder) await(t *testing.T, kind watch.Kind, node string) (found watch.Entry) {
	t.Helper()
	testwait.Until(t, "an entry "+string(kind)+" on "+node, func() (ok bool) {
		found, ok = r.find(func(e watch.Entry) bool { return e.Kind == kind && e.Node == node })
		return ok
	})
	return found
}

// start watches until the test ends.
func start(t *testing.T, targets ...watch.Target) (*watch.Watcher, *recorder) {
	t.Helper()
	r := new(recorder)
	w := watch.New(watch.Config{Targets: targets, Record: r.record, Every: 200 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if t.Failed() {
			for _, e := range r.all() {
				t.Logf("%s %s %s %v %v", e.At.Format("05.000"), e.Kind, e.Node, e.Numbers, e.Names)
			}
		}
	})
	<-w.Ready()
	return w, r
}

// awaitShards returns the shards when each has its replica, which a new cluster knows a moment later.
func awaitShards(t *testing.T, w *watch.Watcher) (shards []watch.Shard) {
	t.Helper()
	testwait.Until(t, "each shard has its replica", func() bool {
		shards = w.Clusters()[0].Shards
		return len(shards) == 3 && !slices.ContainsFunc(shards, func(s watch.Shard) bool { return s.Master == "" || len(s.Replicas) == 0 })
	})
	return shards
}

func on(t *testing.T, addr string, args ...any) *redis.Cmd {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DisableIdentity: true})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return c.Do(ctx, args...)
}

func TestCluster(t *testing.T) {
	addrs := teststack.Redis(t)
	w, r := start(t, watch.Target{Name: "main", Addrs: addrs[:1]})
	testwait.Until(t, "all six nodes are known", func() bool {
		c := w.Clusters()[0]
		up := 0
		for _, n := range c.Nodes {
			if n.Up && n.RunID != "" && n.Shard != "" {
				up++
			}
		}
		return c.Mode == watch.Clustered && up == 6 && len(c.Shards) == 3
	})
	for _, s := range w.Clusters()[0].Shards {
		if s.Slots < 5461 || s.Master == "" || len(s.Replicas) != 1 || s.Epoch == 0 {
			t.Errorf("shard %+v is not whole", s)
		}
	}
	for _, place := range []notify.Place{{Node: addrs[5], Slot: 0}, {Node: addrs[0], Slot: 16383}} {
		at, ok := w.Locate(place)
		if !ok || at.Cluster != "main" || !watch.InShard(at.Shard, place.Slot) || at.SeenAt.IsZero() {
			t.Errorf("Locate(%v) = %+v, %v", place, at, ok)
		}
	}
	if _, ok := w.Locate(notify.Place{Node: "192.0.2.1:6379", Slot: 0}); ok {
		t.Error("a node of another cluster was found by its slot")
	}
	if e, ok := r.find(func(e watch.Entry) bool { return e.Kind == watch.Watching }); !ok || e.Cluster != "main" {
		t.Errorf("the first entry is %+v, want that the watch began", e)
	}
}

func TestFailoverAndRestart(t *testing.T) {
	c := teststack.StartCluster(t, "watch")
	w, r := start(t, watch.Target{Name: "main", Addrs: c.Addrs})
	shard := awaitShards(t, w)[0]
	old, promoted := shard.Master, shard.Replicas[0]

	// What the master takes from now on never reaches its replica.
	c.Stack(t, "pause", c.Node(t, promoted))
	if err := on(t, old, "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	writes := 0
	for writes < 100 {
		key := "k" + strings.Repeat("x", writes)
		if on(t, old, "SET", key, "v").Err() == nil {
			writes++
			continue
		}
		writes++ // another shard's
	}
	seen := w.Clusters()[0].SeenAt
	testwait.Until(t, "the writes are seen", func() bool {
		return w.Clusters()[0].SeenAt.Sub(seen) > 500*time.Millisecond
	})
	c.Stack(t, "kill", c.Node(t, old))
	c.Stack(t, "resume", c.Node(t, promoted))

	e := r.await(t, watch.Failover, promoted)
	if e.Peer != old || e.Shard != shard.Name || e.Numbers[watch.NewEpoch] <= e.Numbers[watch.OldEpoch] {
		t.Errorf("failover %+v, want from %s, shard %s and a higher epoch", e, old, shard.Name)
	}
	if e.Numbers[watch.LostBytes] <= 0 {
		t.Errorf("failover %+v, want lost bytes", e)
	}
	if down := r.await(t, watch.Down, old); down.Numbers[watch.Refused] != 1 || down.At.After(e.At) {
		t.Errorf("down %+v, want refused and before the failover", down)
	}
	c.Stack(t, "start", c.Node(t, old))
	if e := r.await(t, watch.Restart, old); e.Numbers[watch.WasMaster] != 1 {
		t.Errorf("restart %+v, want of a master", e)
	}
	if e := r.await(t, watch.Up, old); e.Numbers[watch.SameProcess] != 0 {
		t.Errorf("up %+v, want another process", e)
	}
	for _, e := range r.all() {
		if e.Kind == watch.Resharding {
			t.Errorf("a failover is told as %+v", e)
		}
	}
}

func TestPausedMaster(t *testing.T) {
	c := teststack.StartCluster(t, "watch")
	w, r := start(t, watch.Target{Name: "main", Addrs: c.Addrs})
	shard := awaitShards(t, w)[1]
	c.Stack(t, "pause", c.Node(t, shard.Master))
	if e := r.await(t, watch.Down, shard.Master); e.Numbers[watch.Refused] != 0 {
		t.Errorf("down %+v, want not refused", e)
	}
	r.await(t, watch.Failover, shard.Replicas[0])
	c.Stack(t, "resume", c.Node(t, shard.Master))
	e := r.await(t, watch.Up, shard.Master)
	if e.Numbers[watch.SameProcess] != 1 || e.Numbers[watch.SilentMS] < 1000 {
		t.Errorf("up %+v, want the same process after seconds", e)
	}
}

func TestEviction(t *testing.T) {
	c := teststack.StartCluster(t, "watch")
	_, r := start(t, watch.Target{Name: "main", Addrs: c.Addrs[:1]})
	node := c.Addrs[0]
	for _, set := range [][]any{
		{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}, {"CONFIG", "SET", "maxmemory", "4mb"},
	} {
		if err := on(t, node, set...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	value := strings.Repeat("v", 1<<17)
	for i := range 200 {
		_ = on(t, node, "SET", "k"+strings.Repeat("x", i), value).Err() // some are another shard's
	}
	if e := r.await(t, watch.Eviction, node); e.Numbers[watch.Evicted] < 1 || e.Names[watch.Policy] != "allkeys-lru" {
		t.Errorf("eviction %+v, want keys and the policy", e)
	}
}

// Who may not ask for the cluster's nodes would see no failover.
func TestForbiddenCluster(t *testing.T) {
	addrs := teststack.Redis(t)
	const user = "half-blind"
	rule := func(args ...any) {
		t.Helper()
		if err := on(t, addrs[0], append([]any{"ACL", "SETUSER", user}, args...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rule("on", ">secret", "+info")
	t.Cleanup(func() { on(t, addrs[0], "ACL", "DELUSER", user) })
	w, r := start(t, watch.Target{Name: "main", Addrs: addrs[:1], Username: user, Password: "secret"})
	if n := w.Clusters()[0].Nodes[0]; n.Up || !strings.Contains(n.Error, "CLUSTER NODES: NOPERM") {
		t.Errorf("node %+v, want what it forbids", n)
	}
	if at, ok := w.Locate(notify.Place{Node: addrs[0]}); !ok || !at.SeenAt.IsZero() {
		t.Errorf("Locate = %+v, %v, want a node that was never seen", at, ok)
	}
	rule("+cluster")
	r.await(t, watch.Watching, addrs[0])
}
