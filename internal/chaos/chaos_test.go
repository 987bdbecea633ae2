package chaos_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
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

// A form is a way to run the test.
type form string

const (
	short  form = "short"  // on the database that all tests share, which lives on
	fierce form = "fierce" // on one of its own, which is killed
	calm   form = "calm"   // likewise, with few faults, for hours
)

var intensities = map[form]intensity{
	short: {
		deck: []faultKind{kill, pause, failover, failover}, rest: time.Second,
		events: []faultKind{monitorKilled, linkCut, linkAway, linkMute}, restOf: 2 * time.Second,
		between: 30 * time.Millisecond, cutOneIn: 4,
	},
	fierce: {
		deck: []faultKind{kill, kill, pause, failover, failover, databaseKilled}, rest: time.Second,
		events: []faultKind{monitorKilled, linkCut, linkAway, linkMute}, restOf: 2 * time.Second,
		between: 30 * time.Millisecond, cutOneIn: 4,
	},
	calm: {
		deck: []faultKind{kill, pause, failover, databaseKilled}, rest: 25 * time.Second,
		events: []faultKind{linkCut, linkAway, linkMute}, restOf: 20 * time.Second,
		between: 500 * time.Millisecond, cutOneIn: 4, local: true,
	},
}

// intensity returns that of a form: on a bed, with its faults in place of the database's.
func (s *server) intensity(f form) intensity {
	in := intensities[f]
	if s.bed != nil {
		in.deck = append([]faultKind{kill, failover}, s.bed.deck...)
	}
	return in
}

// pace is how long a caller waits between two calls, at most. A run of hours is slow, or its
// record would fill the memory.
var pace = map[form]string{short: "10ms", fierce: "10ms", calm: "400ms"}

// chosenForm returns how to run, and for how long, in whole rounds of great faults.
func chosenForm(t *report) (form, time.Duration) {
	text := os.Getenv("BELAY_CHAOS")
	if _, isBed := beds[chosen()]; text == "" && isBed {
		return fierce, time.Second // one round
	}
	if text == "" {
		return short, 15 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("BELAY_CHAOS: %v", err)
	}
	return fierce, d
}

// TestChaos runs on the database or the bed that BELAY_CHAOS_ON names. With BELAY_CHAOS_JUDGE, a folder in which a failed run was kept, it
// judges that run again instead.
func TestChaos(t *testing.T) {
	dir := os.Getenv("BELAY_CHAOS_JUDGE")
	if dir == "" {
		r := newReport(t)
		f, d := chosenForm(r)
		chaos(r, f, d)
		return
	}
	r, err := loadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	check(&report{T: t}, r)
}

// chaos has workers work under the faults of a plan and checks what came of it. It returns
// the run and, of the calm form, samples of the monitor.
func chaos(t *report, f form, d time.Duration) (run, []sample) {
	t.seed = seedOf(t)
	head := head{Database: chosen(), Seed: t.seed}
	t.keepJSON(headFile, head)
	server := startServer(t, f != short)
	program := buildMonitor(t)
	db := server.open(t, server.dsn)
	prepare(t, db)
	cluster := teststack.StartCluster(t, "chaos")
	way := newWay(t, cluster, program)
	queue := "chaos-" + strings.ToLower(rand.Text())
	declareQueue(t, way.broker, queue)
	provider := startProvider(t, t.seed, remembered)
	p := newPlan(t.seed, d, server.intensity(f))
	t.write(planFile, p)
	env := []string{
		seedName + "=" + strconv.FormatUint(t.seed, 10), "BELAY_CHAOS_DSN=" + strings.Join(server.dsns, " "),
		"BELAY_CHAOS_AMQP=" + way.through, "BELAY_CHAOS_PACE=" + pace[f],
		queueName + "=" + queue, providerName + "=" + provider.Addr,
	}
	ports := portsOf(t, server, cluster.Addrs, way.services.Addr, way.behind.Addr)
	var sampling sync.WaitGroup
	var samples []sample
	stop := make(chan struct{})
	if f == calm {
		env = append(env, portsName+"="+ports.String())
		sampling.Go(func() { samples = way.monitor.sampleUntil(stop, ports) })
	}
	crew := startCrew(t, workers, cluster, env...)
	w := newWrecker(t, server, db, crew, way)
	w.follow(p)
	if f != short { // it may take the lease of a worker that was killed
		live(t, db)
	}
	close(stop)
	sampling.Wait()
	records := crew.finish()
	var ending sync.WaitGroup
	var out outside
	ending.Go(func() { out = end(t, server, cluster, way.broker, queue, provider) })
	ended := time.Now()
	events := way.deliver(db, handedIn(records))
	delivered := time.Since(ended)
	ending.Wait()
	t.keepJSON(outFile, out)
	t.Logf("after the workers' end: %.1f s until the monitor had all events, %.1f s until messages and payments were ended", delivered.Seconds(), time.Since(ended).Seconds())
	r := run{head, records, w.faults, readRows(t, db), out, events}
	if server.bed != nil {
		server.bed.checkNodes(r.rows)
	}
	check(t, r)
	return r, samples
}

// prepare makes the tables and the rows that are updated. The test itself has one
// connection, which it never cuts.
func prepare(t *report, db *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	if err := db.AutoMigrate(tables...); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(outbox.Migrate(t.Context(), db), once.Migrate(t.Context(), db), once.MigrateCalls(t.Context(), db), relay.Migrate(t.Context(), db)); err != nil {
		t.Fatal(err)
	}
	create := func(row any) {
		if err := db.Create(row).Error; err != nil {
			t.Fatal(err)
		}
	}
	for id := int64(1); id <= rowsOf[counters]; id++ {
		create(&Counter{ID: id})
	}
	for id := int64(1); id <= rowsOf[stamped]; id++ {
		create(&Stamped{ID: id})
	}
	for id := int64(1); id <= rowsOf[items]; id++ {
		create(&Item{ID: id})
	}
	for id := int64(1); id <= rowsOf[stocks]; id++ {
		create(&Stock{ID: id})
	}
	for id := int64(1); id <= rowsOf[tallies]; id++ {
		create(&Tally{ID: id})
	}
	for id := int64(1); id <= rowsOf[depots]; id++ {
		create(&Depot{ID: id})
	}
	for id := int64(1); id <= rowsOf[tills]; id++ {
		create(&Till{ID: id})
	}
	for id := int64(1); id <= rowsOf[accounts]; id++ {
		create(&Account{ID: id, Balance: opening})
	}
	for id := int64(1); id <= rowsOf[pairs]; id++ {
		create(&Half{ID: 2 * id})
		create(&Half{ID: 2*id + 1})
	}
}
