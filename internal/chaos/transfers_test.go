package chaos_test

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

// transfersName is the variable that has a worker make transfers only.
const transfersName = "BELAY_CHAOS_TRANSFERS"

// transferWait is how long a transfer waits for its locks at least.
var transferWait time.Duration

// onlyTransfers has this process draw transfers only, between many accounts. Each waits for
// longer than a failover and those in front of it take.
func onlyTransfers() {
	shares, rowsOf[accounts], transferWait = []class{accounts}, 50, time.Minute
}

// nowhere takes events, which the workers' journals have.
type nowhere struct{}

func (nowhere) Publish(context.Context, notify.Event) error { return nil }

// TestTransfers has 8 processes move money between 50 accounts in random pairs while masters
// are killed: no money is made or lost, nobody waits in vain, no deadlock ends a transfer,
// and there are no false alarms. BELAY_TRANSFERS says for how long.
func TestTransfers(t *testing.T) {
	d, err := time.ParseDuration(cmp.Or(os.Getenv("BELAY_TRANSFERS"), "5s"))
	if err != nil {
		t.Fatalf("BELAY_TRANSFERS: %v", err)
	}
	before, accountsBefore := shares, rowsOf[accounts]
	onlyTransfers()
	t.Cleanup(func() { shares, rowsOf[accounts], transferWait = before, accountsBefore, 0 })

	r := newReport(t)
	r.seed = seedOf(r)
	head := head{Database: chosen(), Seed: r.seed, Transfers: true}
	r.keepJSON(headFile, head)
	server := startServer(r, false)
	db := server.open(r, server.dsn)
	prepare(r, db)
	cluster := teststack.StartCluster(r, "transfers")
	crew := startCrew(r, 8, cluster, transfersName+"=1", seedName+"="+strconv.FormatUint(r.seed, 10),
		"BELAY_CHAOS_DSN="+strings.Join(server.dsns, " "), "BELAY_CHAOS_PACE=10ms")
	w := newWrecker(r, server, db, crew, nil)
	w.follow(plan{rounds(draws(r.seed, "great faults"), d, []faultKind{failover, failover}, time.Second)})
	records := crew.finish()
	run := run{head: head, records: records, faults: w.faults, rows: readRows(r, db)}
	var events []any
	for _, e := range handedIn(records) {
		run.events, events = append(run.events, *e.event), append(events, *e.event)
	}
	r.keepJSON(eventsFile, events...)
	check(r, run)
}

// checkTransfers checks that each transfer ended, and for no reason but its own, a lock that
// failed, or a master that was away.
func checkTransfers(t *report, rec *record) {
	t.Helper()
	for _, c := range firsts(rec.calls) {
		switch {
		case c.returned == 0:
			t.Errorf("a transfer that never ended:\n%s", c)
		case c.result == "busy":
			t.Errorf("a transfer that waited in vain:\n%s", c)
		case slices.ContainsFunc(deadlockWords, func(s string) bool { return strings.Contains(c.result, s) }):
			t.Errorf("a deadlock:\n%s", c)
		}
	}
}
