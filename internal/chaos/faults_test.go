package chaos_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/teststack"
)

// A wrecker does what a plan says.
type wrecker struct {
	t       *report
	cluster *teststack.Cluster
	client  *redis.ClusterClient
	server  *server
	db      *gorm.DB
	way     *way
	crew    *crew

	mu     sync.Mutex
	faults []fault
	kept   *json.Encoder // writes the faults to a file
}

func newWrecker(t *report, s *server, db *gorm.DB, c *crew, w *way) *wrecker {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.cluster.Addrs, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	file := t.file(faultsFile)
	t.Cleanup(func() { _ = file.Close() })
	return &wrecker{t: t, cluster: c.cluster, client: client, server: s, db: db, way: w, crew: c, kept: json.NewEncoder(file)}
}

// follow takes all steps of the plan and returns when it has.
func (w *wrecker) follow(p plan) {
	var tracks sync.WaitGroup
	for _, track := range p {
		tracks.Go(func() {
			for _, s := range track {
				late := w.crew.at() - s.At
				if late > 200*time.Millisecond && (s.Kind == wipe || s.Kind == cut) {
					continue // after a stall there would be a storm of them
				}
				w.linger(-late)
				w.take(s)
			}
		})
	}
	tracks.Wait()
}

func (w *wrecker) take(s step) {
	switch s.Kind {
	case wipe:
		w.wipe(s.Key.key(w.crew.at()))
	case cut:
		w.cut(int(s.Whom))
	case kill:
		w.kill(int(s.Whom))
	case pause:
		w.pause(w.crew.member(int(s.Whom)))
	case failover:
		w.failOver(int(s.Whom))
	case databaseKilled:
		w.killDatabase()
	case monitorKilled:
		w.hurt(s.Kind, "", func() bool { w.way.monitor.kill(); w.linger(s.For); return true })
		w.way.monitor.start()
	case linkCut, linkAway, linkMute:
		w.hurt(s.Kind, "", func() bool { w.way.hurt(s); return true })
	default:
		w.hurtBed(s)
	}
}

// hurt does something and notes it as a fault if it did.
func (w *wrecker) hurt(kind faultKind, subject string, do func() bool) {
	from := now()
	if !do() {
		return
	}
	f := fault{kind, subject, from, now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, f)
	if err := w.kept.Encode(f); err != nil {
		w.t.Error(err)
	}
}

// wipe takes a lock away, if somebody has it.
func (w *wrecker) wipe(key string) {
	w.hurt(wipe, key, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		n, err := w.client.Del(ctx, key).Result()
		if err == nil && n == 0 {
			return false
		}
		w.crew.wiped(key)
		return true
	})
}

// cut has the database, or a node of the bed, end a connection of a worker, one that is in
// a statement if there is any.
func (w *wrecker) cut(whom int) {
	db, user := w.db, "belay"
	if b := w.server.bed; b != nil {
		db, user = b.admin[whom/7%len(b.admin)], b.user
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	db = db.WithContext(ctx)
	var ids []int64
	var own session
	if db.Raw(w.server.sessions, sql.Named("user", user)).Scan(&ids).Error != nil || len(ids) == 0 ||
		db.Raw(databases[kindOf(w.server.name)].self).Row().Scan(&own.id, &own.server) != nil {
		return // it was killed, or nobody works
	}
	hit := session{ids[whom%len(ids)], own.server}
	w.hurt(cut, hit.String(), func() bool {
		return db.Exec(fmt.Sprintf(w.server.kill, hit.id)).Error == nil // else it has ended by itself
	})
}

func (w *wrecker) kill(whom int) {
	p := w.crew.member(whom)
	w.hurt(kill, p.Name(), func() bool {
		p.Kill()
		return true
	})
	w.crew.replace(p)
}

// pause has a worker stand still for longer than its locks last.
func (w *wrecker) pause(p *process) {
	w.hurt(pause, p.Name(), func() bool {
		p.Signal(syscall.SIGSTOP)
		w.linger(ttl + time.Second)
		p.Signal(syscall.SIGCONT)
		return true
	})
}

// killDatabase kills the server under load and starts it again.
func (w *wrecker) killDatabase() {
	w.hurt(databaseKilled, w.server.name, func() bool {
		w.server.own.Kill(w.t)
		w.server.own.Start(w.t)
		return true
	})
}

// failOver has a master die with locks that its replica has not heard of, waits
// until the replica is the master, and starts the dead one again.
func (w *wrecker) failOver(whom int) {
	master, replica := w.shard(whom)
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

// shard returns a shard that has a replica.
func (w *wrecker) shard(whom int) (master, replica string) {
	w.await("a shard has a replica", func() bool {
		ranges, err := w.on(w.cluster.Addrs[whom%6], "CLUSTER", "SLOTS").Slice()
		if err != nil || len(ranges) == 0 {
			return false
		}
		r := ranges[whom/6%len(ranges)].([]any)
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
