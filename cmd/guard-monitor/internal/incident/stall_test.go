package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// shards are three shards, each with its master.
var shards = []struct{ name, master string }{{"0-5460", "10.0.0.2:6379"}, {shard, oldMaster}, {"10923-16383", "10.0.0.3:6379"}}

// sendEach stores an event of a lock of each shard.
func (b *bench) sendEach(change func(*notify.Event)) {
	b.t.Helper()
	for n := range shards {
		b.send("order:1", func(ev *notify.Event) {
			change(ev)
			onShard(n)(ev)
		})
	}
}

// onShard moves an event to the shard.
func onShard(n int) func(*notify.Event) {
	return func(ev *notify.Event) { ev.Place = notify.Place{Node: shards[n].master, Slot: n * 5461} }
}

func withoutLock(ev *notify.Event) {
	ev.Verdict, ev.HolderAtConflict, ev.Loss = notify.VerdictUnavailable, "", ""
	ev.Outcome, ev.Owner, ev.AcquiredAt, ev.Deadline = notify.OutcomeRolledBack, "", time.Time{}, time.Time{}
}

// What stood still or failed as a whole is one incident, however many shards keep the locks.
func TestOneStallIsOneIncident(t *testing.T) {
	died := func(b *bench, at float64, n int) {
		b.saw(entry(watch.Down, at, func(e *watch.Entry) {
			e.Node, e.Shard, e.Numbers[watch.Refused] = shards[n].master, shards[n].name, 1
			e.Names = map[string]string{watch.Role: "master"}
		}))
	}
	stopped := func(b *bench, list ...int) {
		for _, n := range list {
			b.saw(on(shards[n].master, entry(watch.ClusterDown, -3, func(e *watch.Entry) { e.Shard = shards[n].name })))
		}
	}
	for name, tt := range map[string]struct {
		happens func(*bench)
		cause   incident.Cause
		shard   string
		rows    []int // the shards that the evidence has rows of
	}{
		"the instance":   {func(b *bench) { b.sendEach(expired) }, incident.Overrun, "", nil},
		"another writer": {func(b *bench) { b.sendEach(intruded) }, incident.Bypass, "", nil},
		"the network":    {func(b *bench) { b.sendEach(withoutLock) }, incident.Unreachable, "", []int{0, 1, 2}},
		"no renewals":    {func(b *bench) { b.sendEach(unrenewed) }, incident.Partition, "", nil},
		"the network, of nodes not watched yet": {func(b *bench) {
			b.watching = false
			for n := range 2 {
				b.send("order:1", func(ev *notify.Event) { withoutLock(ev); onShard(n)(ev) })
			}
			b.round(0)
			b.watching = true
			b.send("order:1", func(ev *notify.Event) { withoutLock(ev); onShard(2)(ev) })
			b.round(0)
			b.saw(on("10.0.0.9:6379", deleted(0, 0)))
		}, incident.Unreachable, "", []int{0, 1, 2}},
		"works without": {func(b *bench) {
			b.sendEach(func(ev *notify.Event) { withoutLock(ev); ev.Verdict = notify.VerdictDegraded })
		}, incident.DegradedPeer, "", nil},
		"all of Redis":    {func(b *bench) { died(b, -2, 0); died(b, -1, 1); died(b, -2, 2); b.sendEach(withoutLock) }, incident.Restart, "", []int{0, 1, 2}},
		"all, one by one": {func(b *bench) { b.sendEach(withoutLock); b.round(0); died(b, -2, 0); died(b, -1, 1); died(b, -2, 2) }, incident.Restart, "", []int{0, 1, 2}},
		"all, back by turns": {func(b *bench) {
			died(b, -50, 0)
			died(b, -49, 1)
			died(b, -50, 2)
			b.saw(on(shards[0].master, restartOver(-51, -5)))
			b.sendEach(withoutLock)
		}, incident.Restart, "", []int{0, 1, 2}},
		"one stops all": {func(b *bench) { died(b, -20, 1); stopped(b, 0, 2); b.sendEach(withoutLock) }, incident.Restart, shard, []int{1}},
		"one stops all, seen late": {func(b *bench) { b.sendEach(withoutLock); b.round(0); died(b, -2, 1); stopped(b, 0, 2) },
			incident.Restart, shard, []int{1}},
		"two stop one": {func(b *bench) { died(b, -20, 1); died(b, -19, 2); stopped(b, 0); b.sendEach(withoutLock) },
			incident.Restart, "", []int{1, 2}},
		"one stops others": {func(b *bench) {
			died(b, -20, 1)
			stopped(b, 0)
			b.send("order:1", func(ev *notify.Event) { withoutLock(ev); onShard(0)(ev) })
		},
			incident.Restart, shard, []int{0, 1}},
		"one shard":        {func(b *bench) { died(b, -2, 1); b.send("order:1", withoutLock) }, incident.Restart, shard, []int{1}},
		"at another time":  {func(b *bench) { died(b, -300, 0); died(b, -2, 1); b.send("order:1", withoutLock) }, incident.Restart, shard, []int{1}},
		"beside a replica": {func(b *bench) { b.saw(on(elsewhere, down(-2, 1))); died(b, -2, 1); b.send("order:1", withoutLock) }, incident.Restart, shard, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.shards = true
			tt.happens(b)
			b.round(time.Minute)
			open := 0
			var evidence string
			for _, i := range b.all() {
				if !i.State.Open() {
					continue
				}
				if tt.cause == incident.Restart && len(b.all()) > 1 && i.Severity() != "critical" { // several reports are in it
					t.Errorf("the incident is %s", i.Severity())
				}
				evidence = rowsOf(i)
				if open++; i.Cause != tt.cause || i.Shard != tt.shard || i.Cluster != "main" {
					t.Errorf("incident %s in %q of %q, want %s in %q", i.Cause, i.Shard, i.Cluster, tt.cause, tt.shard)
				}
			}
			if open != 1 {
				t.Errorf("%d incidents, want 1", open)
			}
			for _, n := range tt.rows {
				if !strings.Contains(evidence, shards[n].master) {
					t.Errorf("the evidence lacks %s:\n%s", shards[n].master, evidence)
				}
			}
		})
	}
}

// rowsOf is the evidence of an incident, a line for each row.
func rowsOf(i incident.Incident) string {
	var text strings.Builder
	for _, e := range i.Evidence {
		text.WriteString(e.Node + " " + said(e) + "\n")
	}
	return text.String()
}

// Operations that are refused are an effect: they escalate, and are urgent as soon as they go on.
func TestRefusedOperationsAreUrgent(t *testing.T) {
	b := newBench(t)
	refuse := func(n int) incident.Incident {
		t.Helper()
		b.send("order:1", func(ev *notify.Event) { withoutLock(ev); ev.Count = n })
		b.round(time.Second)
		return b.incidents(1)[0]
	}
	if i := refuse(3); i.Severity() != "warning" {
		t.Errorf("a moment without Redis is %s", i.Severity())
	}
	if i := refuse(1); i.Severity() != "critical" {
		t.Errorf("operations that are refused again are %s", i.Severity())
	}
	b.round(time.Minute)
	if i := refuse(40); i.State != incident.Escalating || i.Effect.Refused != 44 {
		t.Errorf("%d refused: %s, want escalating", i.Effect.Refused, i.State)
	}
	b.pass(11 * time.Minute)
	if i := b.incidents(1)[0]; i.State.Open() || i.Severity() != "critical" {
		t.Errorf("in the end it is %s, %s: an alert would have other labels", i.State, i.Severity())
	}
	if i := refuse(2); i.State != incident.Regressed || i.Severity() != "warning" || i.Current().Refused != 2 || i.Effect.Refused != 46 {
		t.Errorf("%s, %s, %d refused: what was refused the last time counts", i.State, i.Severity(), i.Current().Refused)
	}
	if i := refuse(10); i.Severity() != "critical" {
		t.Errorf("it is %s", i.Severity())
	}
	if got := incident.SeverityOf(notify.Event{Verdict: notify.VerdictUnavailable, Outcome: notify.OutcomeRolledBack, Count: 10}); got != "critical" {
		t.Errorf("an event of 10 refused operations is %s", got)
	}
}

// What has failed since an incident came back is counted by itself.
func TestCountsOfAReturn(t *testing.T) {
	b := newBench(t)
	fail := func(n int) incident.Counts {
		t.Helper()
		b.send("order:1", func(ev *notify.Event) { ev.Count = n })
		b.round(time.Second)
		return b.incidents(1)[0].Counts()
	}
	if got := fail(40); got != (incident.Counts{Failures: 40}) {
		t.Errorf("counts %+v, want 40 failures", got)
	}
	b.pass(11 * time.Minute)
	if got := fail(3); got != (incident.Counts{Failures: 3}) {
		t.Errorf("counts after the return %+v, want 3 failures", got)
	}
}
