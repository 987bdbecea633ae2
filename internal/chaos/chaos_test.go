// Package chaos has a randomized test of both layers at once. Several processes
// do thousands of operations on few keys while locks are wiped, masters killed
// with locks that no replica has, processes paused past their leases and killed,
// and connections to the database cut by the server. Every other process goes on
// without the lock where it can't be asked. An oracle of its own, which knows nothing of Belay but when the engine
// granted and released and what the database answered, says which operations had
// a lock at the same time; each of those must have been reported, and nothing
// else.
package chaos_test

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	name := os.Getenv(workerName)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := work(name); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// workers is how many processes work at a time.
const workers = 4

// duration is how long the test wrecks, in whole rounds of all faults. BELAY_CHAOS
// sets another.
func duration(t *report) time.Duration {
	text := os.Getenv("BELAY_CHAOS")
	if text == "" {
		return 15 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("BELAY_CHAOS: %v", err)
	}
	return d
}

// TestChaos runs on the database that BELAY_CHAOS_ON names: mariadb, mysql or
// postgres. With BELAY_CHAOS_JUDGE, a folder in which a failed run was kept, it
// judges that run again instead.
func TestChaos(t *testing.T) {
	dir := os.Getenv("BELAY_CHAOS_JUDGE")
	if dir == "" {
		chaos(newReport(t))
		return
	}
	r, err := loadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	check(&report{T: t}, r)
}

func chaos(t *report) {
	kind, ok := databases[chosen()]
	if !ok {
		t.Fatalf("%s=%s is none of mariadb, mysql and postgres", databaseName, chosen())
	}
	dsn := kind.dsn(t)
	db := kind.open(t, dsn)
	oneConnection(t, db)
	if err := db.AutoMigrate(&Order{}, &Counter{}); err != nil {
		t.Fatal(err)
	}
	for id := range int64(counters) {
		if err := db.Create(&Counter{ID: id + 1}).Error; err != nil {
			t.Fatal(err)
		}
	}
	w := newWrecker(t, kind, db)
	lines := wreck(t, w, dsn)
	check(t, run{lines, w.faults, readRows(t, db)})
}

// oneConnection has the test itself use one connection, which it never cuts.
func oneConnection(t *report, db *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
}

// wreck has workers work while everything breaks, and returns what they saw.
func wreck(t *report, w *wrecker, dsn string) map[string][]line {
	var all []*process
	start := func() {
		name := fmt.Sprintf("w%d", len(all))
		p := startWorker(t, name, dsn, w.cluster.Addrs, policyOf(name))
		all, w.workers = append(all, p), append(w.workers, p)
	}
	for range workers {
		start()
	}
	kinds := []faultKind{kill, pause, failover, failover}
	for until := time.Now().Add(duration(t)); time.Now().Before(until); {
		w.rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds {
			wipes(w, time.Second)
			i := w.rand.IntN(len(w.workers))
			p := w.workers[i]
			switch kind {
			case kill:
				w.hurt(kill, p.name, func() bool {
					p.signal(syscall.SIGKILL)
					<-p.exited
					return true
				})
				w.workers = slices.Delete(w.workers, i, i+1)
				start()
			case pause:
				w.hurt(pause, p.name, func() bool {
					p.signal(syscall.SIGSTOP)
					wipes(w, ttl+time.Second)
					p.signal(syscall.SIGCONT)
					return true
				})
			case failover:
				w.failOver()
			}
		}
	}
	for _, p := range w.workers {
		p.finish()
	}
	lines := make(map[string][]line)
	for _, p := range all {
		lines[p.name] = p.lines
	}
	return lines
}

// policyOf is what the worker of a name, which ends in its number, does without a lock.
func policyOf(name string) guard.Policy {
	if (name[len(name)-1]-'0')%2 == 0 {
		return guard.Refuse
	}
	return guard.DBOnly
}

// wipes takes locks away and cuts connections for a while.
func wipes(w *wrecker, d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		w.wipe()
		if w.rand.IntN(4) == 0 {
			w.cut()
		}
		w.linger(time.Duration(w.rand.IntN(30)) * time.Millisecond)
	}
}

// check compares what was promised with what the database has and what was
// reported.
func check(t *report, r run) {
	t.Helper()
	h := read(r.lines, r.faults)
	duplicates := checkOrders(t, r.rows.Orders, h)
	lostUpdates := checkCounters(t, r.rows.Counters, h)
	overlaps := h.overlaps()
	reported, blind := 0, make(map[string]int)
	for _, o := range overlaps {
		switch reason := o.blindSpot(); {
		case o.reported():
			reported++
		case reason != "":
			blind[reason]++
		default:
			t.Errorf("nobody reported that two had %s:\n%s\n%s", o.first.key, o.first, o.second)
		}
	}
	blinds := 0
	for reason, n := range blind {
		t.Logf("%d overlaps not reported: %s", n, reason)
		blinds += n
	}
	falseAlarms, lapsed := 0, 0
	for _, c := range h.calls {
		if h.falseAlarm(c, overlaps) {
			falseAlarms++
			t.Errorf("a false alarm:\n%s", c)
		}
		if c.lapsed() {
			lapsed++
		}
		if n := len(c.alarms()) + c.count(notify.VerdictUnknownCommit); n > 1 {
			t.Errorf("%d events of one call:\n%s", n, c)
		}
		if c.failedUnexplained() {
			t.Errorf("an error that no fault explains:\n%s", c)
		}
		if (c.result == unknown) != (c.returned > 0 && slices.ContainsFunc(c.events, tellsUnknown)) {
			t.Errorf("a commit of unknown outcome is told by the result or by an event only:\n%s", c)
		}
	}
	for worker := range r.lines {
		if n := h.unreported(worker); n != 0 && policyOf(worker) == guard.Refuse {
			t.Errorf("%s refused %d operations more than its events say", worker, n)
		}
	}
	results := h.results()
	if lapsed > len(h.calls)/100+1 {
		t.Errorf("%d of %d leases were not renewed in time", lapsed, len(h.calls))
	}
	t.Logf("results: %v, without a lock: %d, not renewed in time: %d", results, len(h.without()), lapsed)
	t.Logf("faults: %v, COMMITs lost by workers: %d", count(h.faults), h.lost())
	if results[done] < len(h.calls)/10 {
		t.Errorf("%d of %d operations were done", results[done], len(h.calls))
	}
	if reported == 0 {
		t.Error("no overlap was provoked and reported: the test tests nothing")
	}
	fmt.Printf("belay chaos: %d operations, %d faults, %d duplicates, %d lost updates, %d overlaps, %d reported, %d in blind spots, %d false alarms\n",
		len(h.calls), len(h.faults), duplicates, lostUpdates, len(overlaps)-blinds, reported, blinds, falseAlarms)
}

func count(faults []fault) map[faultKind]int {
	n := make(map[faultKind]int)
	for _, f := range faults {
		n[f.Kind]++
	}
	return n
}

// checkOrders returns how many rows should not be there.
func checkOrders(t *report, rows []Order, h *history) (duplicates int) {
	t.Helper()
	by := make(map[string]string)
	for _, r := range rows {
		if _, twice := by[r.No]; twice {
			duplicates++
			t.Errorf("order %s is there twice", r.No)
		}
		by[r.No] = r.By
	}
	for _, c := range h.calls {
		var no string
		if _, err := fmt.Sscanf(c.key, "order:%s", &no); err != nil {
			continue
		}
		mine := by[no] == c.name
		switch {
		case c.result == done && !mine:
			t.Errorf("the row of an insert that was done is not there, but one of %q:\n%s", by[no], c)
		case mine && c.result != done && c.result != unknown && c.returned > 0:
			t.Errorf("the row of an insert that was not done is there:\n%s", c)
		}
	}
	return duplicates
}

// checkCounters returns how many updates are missing.
func checkCounters(t *report, rows []Counter, h *history) (missing int64) {
	t.Helper()
	for _, r := range rows {
		told, open := h.told(counterKey(r.ID), done), h.open(counterKey(r.ID))
		if r.N < told || r.N > told+open {
			t.Errorf("counter %d is %d after %d updates that were done and %d that may have been", r.ID, r.N, told, open)
			missing += max(0, told-r.N)
		}
		if int64(r.Version) != r.N+1 {
			t.Errorf("counter %d is %d at version %d", r.ID, r.N, r.Version)
		}
	}
	return missing
}

func (c *call) String() string {
	s := fmt.Sprintf("%s on %s: begun %d, wrote %d, ended %d, returned %d %q", c.name, c.key, c.begun, c.wrote, c.ended, c.returned, c.result)
	for _, e := range c.events {
		s += fmt.Sprintf(", event %s %s holder %s", e.Verdict, e.Outcome, e.HolderAtConflict)
	}
	if g := c.grant; g != nil {
		s += fmt.Sprintf(", grant %s of %s at %d (%d calls), released %d %q", g.owner, g.node, g.granted, len(g.calls), g.release, g.released)
	}
	return s
}
