package cost_test

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

// wanted is set by make cost, which has the servers for itself: "measure", or "write" to write
// the ceilings and the page anew.
var wanted = os.Getenv("BELAY_COST")

// TestCeilings: an operation costs what testdata has, on each database that is up.
func TestCeilings(t *testing.T) {
	measured := make(map[string][]counts)
	for name, dsn := range each() {
		t.Run(name, func(t *testing.T) {
			database, all := measure(t, dsn(t))
			if measured[database] = all; wanted == "write" {
				write(t, database, all)
			}
			hold(t, database, all)
		})
	}
	if wanted != "" {
		t.Log("\n" + table(measured))
	}
	if wanted == "write" && !t.Failed() {
		writePage(t)
	}
}

// each returns what opens the databases of this run.
func each() map[string]func(testing.TB) string {
	all := map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres}
	usual := os.Getenv("BELAY_MYSQL_DSN")
	if usual != os.Getenv("BELAY_MYSQL9_DSN") {
		all["mysql9"] = teststack.MySQL9
	}
	if usual != os.Getenv("BELAY_MARIADB11_DSN") {
		all["mariadb11"] = teststack.MariaDB11
	}
	return all
}

func hold(t *testing.T, database string, all []counts) {
	t.Helper()
	held := ceilings(t, database)
	for _, c := range all {
		i := slices.IndexFunc(held, func(h counts) bool { return h.operation == c.operation })
		if i < 0 {
			t.Errorf("%s has no %s", path(database), c.operation)
			continue
		}
		if wrong := c.differs(held[i]); wrong != "" {
			t.Errorf("%s on %s: %s", c.operation, database, wrong)
		}
	}
}

// measure returns the name of a database, as its server has it, and what operations cost there.
func measure(t *testing.T, dsn string) (database string, all []counts) {
	t.Helper()
	to := new(recorder)
	s := open(t, dsn, to)
	if err := s.db.Create(&Stock{ID: 1, Left: 1_000_000}).Error; err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		all = append(all, counts{operation: o.name, sent: send(t, o, s, to), fsyncs: -1})
	}
	if !raced {
		weigh(t, all, open(t, dsn, nil))
	}
	return serverOf(t, s.db), all
}

// serverOf returns whose server db is on: mariadb, mysql or postgres. On one of MariaDB 11 rows are
// read before they are written.
func serverOf(t *testing.T, db *gorm.DB) string {
	t.Helper()
	var version string
	if err := db.Raw("SELECT version()").Scan(&version).Error; err != nil {
		t.Fatal(err)
	}
	switch {
	case testdb.SnapshotIsolation(t, db):
		return "mariadb11"
	case strings.Contains(version, "MariaDB"):
		return "mariadb"
	}
	return db.Name()
}

// send returns what an operation sends when it is not the first of its kind, which looks up the
// tables and lets servers prepare statements. It is the same each time.
func send(t *testing.T, o operation, s *service, to *recorder) (sent []request) {
	t.Helper()
	nos := numbers(t, o)
	for i := range 5 {
		again, err := to.record(func() error { return o.do(t.Context(), s, nos()) })
		if err != nil {
			t.Fatalf("%s: %v", o.name, err)
		}
		if i > 2 && !slices.Equal(sent, again) {
			t.Errorf("one time it sends\n%sand another time\n%s", counts{o.name, sent, 0, -1}, counts{o.name, again, 0, -1})
		}
		sent = again
	}
	return sent
}

// weigh counts the allocations of all operations, and fsyncs if nothing else uses the servers: the
// least of three times, as what clients and servers do for themselves comes now and then.
func weigh(t *testing.T, all []counts, s *service) {
	t.Helper()
	const times = 20
	for i, o := range operations {
		c, do := &all[i], repeat(t, o, s)
		do(times) // opens what is opened once
		c.allocations = math.MaxInt
		for range 3 {
			if wanted == "" {
				c.allocations = min(c.allocations, do(times))
				continue
			}
			before := fsyncs(t, s.db)
			c.allocations = min(c.allocations, do(times))
			synced := (fsyncs(t, s.db) - before + times/10) / times // servers add more than they miss
			if c.fsyncs < 0 || synced < c.fsyncs {
				c.fsyncs = synced
			}
		}
	}
}

// repeat returns a function that makes an operation so often, and returns its allocations.
func repeat(t *testing.T, o operation, s *service) func(times int) (allocations int) {
	t.Helper()
	nos := numbers(t, o)
	return func(times int) int {
		var failed error
		n := testing.AllocsPerRun(times-1, func() { // and once before it counts
			if err := o.do(t.Context(), s, nos()); err != nil {
				failed = err
			}
		})
		if failed != nil {
			t.Fatalf("%s: %v", o.name, failed)
		}
		return int(n)
	}
}

// numbers returns numbers that no operation has had.
func numbers(t testing.TB, o operation) func() string {
	t.Helper()
	prefix, n := teststack.Key(t, o.name), 0
	return func() string {
		n++
		return prefix + strconv.Itoa(n)
	}
}
