package lock_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// nodes is an engine with several nodes: the key's part before the colon.
type nodes struct {
	*faults

	mu      sync.Mutex
	batches map[string][]int // sizes of the renewals of each node
	hung    string           // a node that does not answer
	heir    string           // has all keys now, empty = nobody
}

func newNodes() *nodes { return &nodes{faults: newFaults(), batches: make(map[string][]int)} }

func nodeOf(key string) string {
	node, _, _ := strings.Cut(key, ":")
	return node
}

func (n *nodes) Acquire(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	grant, err := n.faults.Acquire(ctx, h, ttl)
	grant.Node = nodeOf(h.Key)
	return grant, err
}

// heirs is a Locator: it knows which node has a key now.
type heirs struct{ *nodes }

func (h heirs) Locate(key string) lockengine.Place {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heir != "" {
		return lockengine.Place{Node: h.heir, Slot: -1}
	}
	return lockengine.Place{Node: nodeOf(key), Slot: -1}
}

func (n *nodes) Renew(ctx context.Context, hs []lockengine.Request, ttl time.Duration) []error {
	node := nodeOf(hs[0].Key)
	n.mu.Lock()
	for _, h := range hs {
		if nodeOf(h.Key) != node && n.heir == "" {
			panic("two nodes in one batch")
		}
	}
	n.batches[node] = append(n.batches[node], len(hs))
	hung := n.hung == node
	n.mu.Unlock()
	if hung {
		return renewHangs(ctx, hs, ttl)
	}
	return n.faults.Renew(ctx, hs, ttl)
}

// take returns the sizes of the batches since it was last called, the greatest
// first.
func (n *nodes) take() map[string][]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.batches
	n.batches = make(map[string][]int)
	for _, sizes := range taken {
		slices.SortFunc(sizes, func(a, b int) int { return b - a })
	}
	return taken
}

func (n *nodes) wantBatches(tb testing.TB, want map[string][]int) {
	tb.Helper()
	if got := n.take(); !maps.EqualFunc(got, want, slices.Equal) {
		tb.Errorf("batches are %v, want %v", got, want)
	}
}

func TestBatchesByNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newNodes()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		var leases []*lock.Lease
		for i, key := range manyKeys(1300) {
			leases = append(leases, acquire(t, l, "big:"+key))
			if i < 10 {
				leases = append(leases, acquire(t, l, "small:"+key))
			}
		}
		want := map[string][]int{"big": {512, 512, 276}, "small": {10}}
		for range 3 {
			pass(renewed)
			engine.wantBatches(t, want)
		}
		for _, lease := range leases {
			wantAlive(t, lease, true)
		}
	})
}

// What is due soon is renewed with what is due now: a sixtieth of the ttl early
// at most, or a lock would be renewed more often than need be.
func TestSoonDueIsTakenAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newNodes()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		for _, key := range []string{"n:0", "n:400ms", "n:800ms", "n:1200ms"} {
			acquire(t, l, key)
			pass(400 * time.Millisecond)
		}
		pass(renewed)
		engine.wantBatches(t, map[string][]int{"n": {2, 2}})
		pass(renewed)
		engine.wantBatches(t, map[string][]int{"n": {2, 2}})
	})
}

// A node that hangs takes its own leases with it, and nobody else's, nor their
// time.
func TestHungNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newNodes()
		engine.hung = "hung"
		l := newLocker(t, engine, lock.Config{TTL: ttl, RequestTimeout: ttl})
		hung, well := acquire(t, l, "hung:1"), acquire(t, l, "well:1")
		pass(time.Second)
		late := acquire(t, l, "well:2")
		pass(renewed - time.Second)
		engine.wantBatches(t, map[string][]int{"hung": {1}, "well": {1}})
		pass(time.Second)
		engine.wantBatches(t, map[string][]int{"well": {1}})
		if left := time.Until(late.Grant().Deadline); left != believed {
			t.Errorf("the deadline is %v away, want %v", left, believed)
		}
		pass(believed)
		wantAlive(t, hung, false)
		wantAlive(t, well, true)
		wantAlive(t, late, true)
	})
}

// Half of a node's leases fail; the other half does not mind.
func TestVerdictsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newNodes()
		engine.onRenew(func(ctx context.Context, hs []lockengine.Request, ttl time.Duration) []error {
			errs := engine.Engine.Renew(ctx, hs, ttl)
			for i, h := range hs {
				if strings.HasSuffix(h.Key, "bad") {
					errs[i] = errDown
				}
			}
			return errs
		})
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		good, bad, gone := acquire(t, l, "n:good"), acquire(t, l, "n:bad"), acquire(t, l, "n:gone")
		engine.Forget("n:gone")
		pass(renewed)
		wantAlive(t, good, true)
		wantAlive(t, bad, true)
		wantAlive(t, gone, false)
		pass(ttl)
		wantAlive(t, good, true)
		wantAlive(t, bad, false)
	})
}

// Batches are made by the node that has the keys now, if the engine can tell.
func TestBatchesAfterFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := heirs{newNodes()}
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		leases := []*lock.Lease{acquire(t, l, "a:1"), acquire(t, l, "a:2"), acquire(t, l, "b:1")}
		pass(renewed)
		engine.wantBatches(t, map[string][]int{"a": {2}, "b": {1}})
		engine.mu.Lock()
		engine.heir = "c"
		engine.mu.Unlock()
		pass(renewed)
		sizes := 0
		for _, batches := range engine.take() {
			sizes += len(batches)
		}
		if sizes != 1 {
			t.Errorf("%d batches to one node, want 1", sizes)
		}
		for _, lease := range leases {
			release(t, lease)
		}
	})
}
