package promises_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// galeraSchedules are what Jepsen did to MariaDB Galera in March 2026, and what an operator meets.
// hurt breaks nodes of c, and makes them whole again.
var galeraSchedules = []struct {
	name  string
	flush string // innodb_flush_log_at_trx_commit; MariaDB recommends 0 for Galera
	hurt  func(c *crashed, round int)
}{
	{"partition", "1", func(c *crashed, round int) {
		c.stack("cut", c.node(round))
		c.linger(4 * time.Second) // the others notice after 2
		c.stack("mend", c.node(round))
	}},
	{"pause", "1", func(c *crashed, round int) {
		c.stack("pause", c.node(round))
		c.linger(4 * time.Second)
		c.stack("resume", c.node(round))
	}},
	{"all but one killed", "1", func(c *crashed, round int) {
		c.stack("kill", c.node(round))
		c.stack("kill", c.node(round+1))
	}},
	{"IST", "1", func(c *crashed, round int) {
		c.stack("kill", c.node(round))
		c.progress()
	}},
	{"SST", "1", func(c *crashed, round int) {
		c.stack("kill", c.node(round))
		c.bed.Wipe(c.t, c.node(round))
		c.progress()
	}},
	{"all killed", "1", (*crashed).killAll},
	{"partition and crash", "1", func(c *crashed, round int) {
		c.stack("cut", c.node(round))
		c.linger(2500 * time.Millisecond)
		c.stack("kill", c.node(round+1))
		c.stack("mend", c.node(round))
		c.linger(time.Second)
		c.stack("kill", c.node(round))
		c.stack("kill", c.node(round+2))
	}},
	{"all but one killed", "0", func(c *crashed, round int) {
		c.stack("kill", c.node(round))
		c.stack("kill", c.node(round+1))
	}},
	{"all killed", "0", (*crashed).killAll},
}

// TestGaleraSchedules counts what becomes of operations during each schedule, with
// BELAY_GALERA_ROUNDS rounds of each, by default one. It fails if an operation takes effect twice,
// or is there although its caller got an error; if commits are lost by a cluster whose nodes flush
// each commit; and if the canary is silent about lost requests, or reports some that are there.
func TestGaleraSchedules(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("BELAY_GALERA_ROUNDS"))
	teststack.Galera(t) // or it is skipped
	for _, flush := range []string{"1", "0"} {
		t.Run("flush="+flush, func(t *testing.T) {
			bed := teststack.StartBed(t, "schedules"+flush, teststack.BedConfig{Servers: []string{"galera"}, Network: true, Env: []string{"BELAY_GALERA_FLUSH=" + flush}})
			for _, wait := range []string{"0", "1"} {
				for _, s := range galeraSchedules {
					if s.flush != flush {
						continue
					}
					t.Run(s.name+", wsrep_sync_wait="+wait, func(t *testing.T) {
						c := newCrashed(t, bed, wait)
						c.during(func() {
							for round := range max(rounds, 1) {
								s.hurt(c, round)
								bed.Stack(t, "heal")
								c.progress()
							}
						})
						c.judge(flush == "1")
					})
				}
			}
		})
	}
}

// crashed is a service with an instance on each node of a cluster whose nodes crash.
type crashed struct {
	t      *testing.T
	bed    *teststack.Bed
	dsns   []string
	nodes  []*guard.Guard
	events *guardtest.Recorder
	*ledger

	next    atomic.Int64 // the instance of the next call
	names   atomic.Int64
	acked   atomic.Int64
	stop    chan struct{}
	running sync.WaitGroup
}

func newCrashed(t *testing.T, bed *teststack.Bed, wait string) *crashed {
	t.Helper()
	c := &crashed{t: t, bed: bed, ledger: newLedger(), stop: make(chan struct{})}
	var first *guardtest.Guard
	for _, dsn := range bed.DSNs(t, "BELAY_GALERA_DSNS") {
		c.dsns = append(c.dsns, dsn+"&timeout=2s&readTimeout=3s&writeTimeout=3s&wsrep_sync_wait="+wait)
	}
	db := openCrashing(t, c.dsns[0])
	wantNil(t, once.Migrate(bg, db))
	wantNil(t, db.Migrator().DropTable(&Order{}, &Page{}))
	wantNil(t, db.AutoMigrate(&Order{}, &Page{}))
	for _, kind := range kinds {
		for n := range pagesOfKind {
			wantNil(t, db.Create(&Page{ID: page(kind, n)}).Error)
		}
	}
	for i, dsn := range c.dsns {
		wantNil(t, openCrashing(t, dsn).Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error)
		if i == 0 {
			first = guardtest.New(t, openCrashing(t, dsn))
			c.nodes, c.events = append(c.nodes, first.Guard), &first.Events
		} else {
			c.nodes = append(c.nodes, first.Peer(t, openCrashing(t, dsn)))
		}
		inside.Of(c.nodes[i]).LookAgainAfter(time.Second)
	}
	return c
}

// openCrashing opens a pool whose connections may be broken when the test ends.
func openCrashing(t *testing.T, dsn string) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(mysql.Open(dsn), &gorm.Config{Logger: logger.Discard})
	wantNil(t, err)
	t.Cleanup(func() {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
	})
	return db
}

// pagesOfKind is how many pages the operations of one kind are written to.
const pagesOfKind = 2

func page(kind string, n int) string { return fmt.Sprint(kind, "-", n%pagesOfKind) }

func (c *crashed) node(n int) string { return fmt.Sprint("galera-", n%3+1) }

func (c *crashed) stack(command, node string) {
	c.t.Helper()
	if command != "cut" && command != "mend" || c.bed.Network {
		c.bed.Stack(c.t, command, node)
	}
}

// linger lets a fault last.
func (c *crashed) linger(d time.Duration) { <-time.After(d) }

// killAll kills all nodes within a moment: one that lives a second longer has flushed its log.
func (c *crashed) killAll(int) {
	c.t.Helper()
	var all []*os.Process
	for n := range 3 {
		p, err := os.FindProcess(c.bed.PID(c.t, c.node(n)))
		wantNil(c.t, err)
		all = append(all, p)
	}
	for _, p := range all {
		wantNil(c.t, p.Kill())
	}
}

// progress waits until operations are done again.
func (c *crashed) progress() {
	c.t.Helper()
	was := c.acked.Load()
	testwait.Until(c.t, "operations are done", func() bool { return c.acked.Load() > was+100 })
}

// during has callers make operations of each kind while f runs.
func (c *crashed) during(f func()) {
	for _, call := range []func(string){c.insert, c.update, c.once, c.crew} {
		for range 2 {
			c.running.Go(func() {
				for {
					select {
					case <-c.stop:
						return
					default:
						call(fmt.Sprint("op", c.names.Add(1)))
					}
				}
			})
		}
	}
	defer c.running.Wait()
	defer close(c.stop)
	c.progress()
	f()
}

// instance returns another instance at each call.
func (c *crashed) instance() *guard.Guard { return c.nodes[c.next.Add(1)%int64(len(c.nodes))] }

// call makes a call on some instance.
func (c *crashed) call(f func(ctx context.Context, g *guard.Guard) error) error {
	ctx, cancel := context.WithTimeout(bg, 8*time.Second)
	defer cancel()
	err := f(ctx, c.instance())
	if err == nil {
		c.acked.Add(1)
	} else {
		<-time.After(20 * time.Millisecond) // as a caller does that tries again
	}
	return err
}

// append returns a change that writes an operation to a page, and notes what it reads there.
func (c *crashed) append(page, name string) guard.Change {
	due := c.due(page)
	return guard.Update(&Page{ID: page}, func(p *Page) error {
		c.read(page, p.Ops, due)
		p.Ops += name + " "
		return nil
	})
}

func (c *crashed) insert(name string) {
	insert := func(ctx context.Context, g *guard.Guard) error {
		return g.Apply(ctx, "order:"+name, guard.Insert(&Order{No: name}))
	}
	err := c.call(insert)
	c.tell("insert", name, "", err)
	if err == nil && c.call(insert) == nil {
		c.again("insert")
	}
}

func (c *crashed) update(name string) {
	at := page("update", int(c.names.Load()))
	c.tell("update", name, at, c.call(func(ctx context.Context, g *guard.Guard) error {
		return g.Apply(ctx, at, c.append(at, name), guard.Wait(5*time.Second), guard.Retries(3))
	}))
}

// once makes a request until it is done, and once more.
func (c *crashed) once(name string) {
	at := page("once", int(c.names.Load()))
	var answer guard.Answer[string]
	request := func(ctx context.Context, g *guard.Guard) (err error) {
		answer, err = guard.Once(ctx, g, request(c.t.Name()+name), func(ctx context.Context, tx *gorm.DB) (string, error) {
			return name, c.append(at, name).Run(ctx, tx)
		}, guard.Also(at, &Page{ID: at}), guard.Wait(5*time.Second))
		return err
	}
	c.untilDone(func() error { return c.call(request) })
	c.tell("once", name, at, nil)
	if c.call(request) == nil && !answer.Replayed {
		c.again("once")
	}
}

// crew makes a request that shares its transaction until it is done, and once more.
func (c *crashed) crew(name string) {
	at := page("crew", int(c.names.Load()))
	request := func(ctx context.Context, g *guard.Guard) error {
		return g.Apply(ctx, at, c.append(at, name), guard.For(request(c.t.Name()+name)), guard.Combine(), guard.Wait(5*time.Second))
	}
	c.untilDone(func() error {
		if err := c.call(request); !errors.Is(err, guard.ErrDuplicate) {
			return err
		}
		return nil
	})
	c.tell("crew", name, at, nil)
	if c.call(request) == nil {
		c.again("crew")
	}
}

// untilDone makes a request again until it is done.
func (c *crashed) untilDone(call func() error) {
	for late := time.Now().Add(2 * time.Minute); ; {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(late) {
			c.t.Errorf("the request is never done: %v", err)
			return
		}
	}
}

// judge compares the nodes with the ledger, and the canary with both.
func (c *crashed) judge(durable bool) {
	c.t.Helper()
	var dbs []*gorm.DB
	for _, dsn := range c.dsns {
		db := openCrashing(c.t, dsn)
		wantNil(c.t, db.Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error)
		dbs = append(dbs, db)
	}
	first, err := found(dbs[0])
	wantNil(c.t, err)
	for i, db := range dbs[1:] {
		if other, err := found(db); err != nil || !maps.Equal(first, other) {
			c.t.Errorf("node %d has %d operations, and node 0 has %d: %v", i+1, len(other), len(first), err)
		}
	}
	sums, stale, err := c.ledger.judge(dbs[0])
	wantNil(c.t, err)
	for _, kind := range kinds {
		s := sums[kind]
		c.t.Logf("%s: %s", kind, s)
		if s.twice > 0 || s.denied > 0 {
			c.t.Errorf("%s: %d took effect twice, and %d although they had failed", kind, s.twice, s.denied)
		}
		if durable && s.lost+s.again > 0 {
			c.t.Errorf("%s: %d are lost, and %d were made again", kind, s.lost, s.again)
		}
	}
	requests := sums["once"].lost + sums["crew"].lost + sums["once"].again + sums["crew"].again
	events, reported := c.lost(requests > 0)
	c.t.Logf("%d stale reads; %d requests lost or made again; %d events of the canary, of %d commits", stale, requests, events, reported)
	if (requests > 0) != (reported > 0) {
		c.t.Errorf("%d requests are lost or were made again, and %d lost commits are reported", requests, reported)
	}
}

// lost returns the events of lost commits and how many commits they count, when no instance looks
// for any more.
func (c *crashed) lost(wanted bool) (events, commits int) {
	c.t.Helper()
	testwait.Until(c.t, "the canaries have looked", func() bool {
		for _, g := range c.nodes {
			if looks, _ := inside.Of(g).Looks(); looks {
				return false
			}
		}
		events, commits = 0, 0
		for _, ev := range c.events.All() {
			if ev.Verdict == notify.VerdictCommitLost {
				events, commits = events+1, commits+ev.Count
			}
		}
		return !wanted || events > 0
	})
	return events, commits
}
