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
