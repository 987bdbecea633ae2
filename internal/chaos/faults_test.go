package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/teststack"
)

// A wrecker breaks locks, nodes and workers.
type wrecker struct {
	t       *report
	rand    *rand.Rand
	cluster *teststack.Cluster
	client  *redis.ClusterClient
	kind    database
	db      *gorm.DB
	workers []*process // that are alive
	faults  []fault
	kept    *json.Encoder // writes the faults to a file
}

func newWrecker(t *report, kind database, db *gorm.DB) *wrecker {
	c := teststack.StartCluster(t, "chaos")
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	file := t.file(faultsFile)
	t.Cleanup(func() { _ = file.Close() })
	return &wrecker{
		t: t, rand: rand.New(rand.NewPCG(seed(t), 0)), cluster: c, client: client,
		kind: kind, db: db, kept: json.NewEncoder(file),
	}
}

// seed returns what the faults are drawn with. BELAY_CHAOS_SEED sets it, which repeats
// the choice of faults, but not when they meet the workers.
func seed(t *report) uint64 {
	seed := rand.Uint64()
	if text := os.Getenv("BELAY_CHAOS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("BELAY_CHAOS_SEED: %v", err)
		}
	}
	fmt.Printf("belay chaos: %s=%s BELAY_CHAOS_SEED=%d\n", databaseName, chosen(), seed)
	return seed
}

// hurt does something and notes it as a fault if it did.
func (w *wrecker) hurt(kind faultKind, subject string, do func() bool) {
	from := now()
	if !do() {
		return
	}
	f := fault{kind, subject, from, now()}
	w.faults = append(w.faults, f)
	if err := w.kept.Encode(f); err != nil {
		w.t.Error(err)
	}
}

// wipe takes a lock away, if somebody has it.
func (w *wrecker) wipe() {
	key := counterKey(w.rand.Int64N(counters) + 1)
	if w.rand.IntN(2) == 0 {
		key = orderKey(orderNo(now(), w.rand.IntN(3)))
	}
	w.hurt(wipe, key, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		n, err := w.client.Del(ctx, key).Result()
		if err == nil && n == 0 {
			return false
		}
		for _, p := range w.workers {
			p.wiped(key)
		}
		return true
	})
}

// cut has the database end a connection of a worker, one that is in a statement
// if there is any.
func (w *wrecker) cut() {
	var id int64
	if err := w.db.Raw(w.kind.session).Scan(&id).Error; err != nil {
		w.t.Error(err)
	}
	w.hurt(cut, fmt.Sprint(id), func() bool {
		return id != 0 && w.db.Exec(fmt.Sprintf(w.kind.kill, id)).Error == nil // else it has ended by itself
	})
}

// failOver has a master die with locks that its replica has not heard of, waits
// until the replica is the master, and starts the dead one again.
func (w *wrecker) failOver() {
	master, replica := w.shard()
	w.cluster.Stack(w.t, "pause", w.cluster.Node(w.t, replica))
	if _, err := w.on(master, "CLIENT", "KILL", "TYPE", "replica").Result(); err != nil {
		w.t.Error(err)
	}
	w.linger(300 * time.Millisecond) // locks that will be lost
	w.hurt(failover, master, func() bool {
		w.cluster.Stack(w.t, "kill", w.cluster.Node(w.t, master))
		w.cluster.Stack(w.t, "resume", w.cluster.Node(w.t, replica))
		return true
	})
	w.await("the replica is promoted", func() bool {
		role, err := w.on(replica, "ROLE").Slice()
		info, err2 := w.on(replica, "CLUSTER", "INFO").Text()
		return err == nil && err2 == nil && role[0] == "master" && strings.Contains(info, "cluster_state:ok")
	})
	w.cluster.Stack(w.t, "heal")
}

// shard draws a shard that has a replica.
func (w *wrecker) shard() (master, replica string) {
	w.await("a shard has a replica", func() bool {
		ranges, err := w.on(w.cluster.Addrs[w.rand.IntN(6)], "CLUSTER", "SLOTS").Slice()
		if err != nil || len(ranges) == 0 {
			return false
		}
		r := ranges[w.rand.IntN(len(ranges))].([]any)
		if len(r) < 4 {
			return false
		}
		address := func(node any) string { return fmt.Sprintf("%v:%v", node.([]any)[0], node.([]any)[1]) }
		master, replica = address(r[2]), address(r[3])
		return true
	})
	return master, replica
}

func (w *wrecker) on(addr string, args ...any) *redis.Cmd {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DisableIdentity: true})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return client.Do(ctx, args...)
}

// linger lets the workers work.
func (w *wrecker) linger(d time.Duration) { <-time.After(d) }

func (w *wrecker) await(what string, cond func() bool) {
	for until := time.Now().Add(time.Minute); !cond(); w.linger(20 * time.Millisecond) {
		if time.Now().After(until) {
			w.t.Fatalf("it never happened: %s", what)
		}
	}
}
