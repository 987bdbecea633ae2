package incident_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// bench is a Tracker on a real store, with a clock that the test moves.
type bench struct {
	t         *testing.T
	store     *store.Store
	tracker   *incident.Tracker
	now       time.Time
	watching  bool
	shards    bool // there are several
	connected bool
	listening bool
	breaks    int // of the heartbeats' connection
	locator   incident.Locator
	rejected  map[string]time.Time
	events    int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, store: newStore(t), now: time.Now(), watching: true, connected: true, listening: true}
	b.locator = b
	b.tracker = b.track(b.store)
	return b
}

func (b *bench) track(s incident.Store) *incident.Tracker {
	b.t.Helper()
	tracker := incident.NewTracker(incident.Config{
		Store: s, Locator: b.locator, Settle: -1,
		Connected: func() bool { return b.connected }, Listening: b.session,
		RejectedAt: func(service string) time.Time { return b.rejected[service] },
	})
	return tracker
}

// session is the bench's Listening.
func (b *bench) session() int {
	if !b.connected || !b.listening {
		return 0
	}
	return 1 + b.breaks
}

func (b *bench) Locate(p notify.Place) (watch.Location, bool) {
	name := shard
	if b.shards {
		name = shards[p.Slot/5461].name
	}
	return watch.Location{Cluster: "main", Shard: name, SeenAt: b.now.Add(time.Minute)}, b.watching && p.Node != ""
}

// send stores an event that was caught just now.
func (b *bench) send(key string, change func(*notify.Event)) {
	b.t.Helper()
	b.events++
	ev := overlap(change)
	shift := b.now.Sub(caught)
	ev.ID, ev.Key = fmt.Sprintf("event-%d", b.events), key
	ev.CaughtAt, ev.AcquiredAt = ev.CaughtAt.Add(shift), ev.AcquiredAt.Add(shift)
	if !ev.Deadline.IsZero() {
		ev.Deadline = ev.Deadline.Add(shift)
	}
	if _, err := b.store.Add(context.Background(), ev, nil, ""); err != nil {
		b.t.Fatal(err)
	}
}

// saw stores an entry as if it had been seen now.
func (b *bench) saw(e watch.Entry) {
	b.t.Helper()
	e.Since, e.At = e.Since.Add(b.now.Sub(caught)), e.At.Add(b.now.Sub(caught))
	if err := b.store.AddEntries(context.Background(), []watch.Entry{e}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) beat(service string) {
	b.t.Helper()
	h := incident.Heartbeat{Service: service, Instance: service + "-1", At: b.now, Every: 10 * time.Second, ReceivedAt: b.now}
	if err := b.store.AddHeartbeat(context.Background(), h); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) forget(pattern string) {
	b.t.Helper()
	if _, err := b.store.Forget(context.Background(), pattern); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) round(later time.Duration) {
	b.t.Helper()
	b.now = b.now.Add(later)
	if err := b.tracker.Round(context.Background(), b.now); err != nil {
		b.t.Fatal(err)
	}
}

// pass does a round every few seconds, as a monitor does that hears everything.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	const step = 20 * time.Second
	for ; d > step; d -= step {
		b.round(step)
	}
	b.round(d)
}

// incidents returns all, the oldest first.
func (b *bench) incidents(want int) []incident.Incident {
	b.t.Helper()
	list := b.all()
	if len(list) != want {
		for _, i := range list {
			b.t.Logf("%s %s %s, %d events: %v", i.Service, i.Cause, i.State, i.Events, i.Evidence)
		}
		b.t.Fatalf("%d incidents, want %d", len(list), want)
	}
	return list
}

func (b *bench) all() []incident.Incident {
	b.t.Helper()
	list, err := b.store.Incidents(context.Background(), store.IncidentFilter{})
	if err != nil {
		b.t.Fatal(err)
	}
	slices.Reverse(list)
	return list
}

func wantState(t *testing.T, i incident.Incident, s incident.State) {
	t.Helper()
	if i.State != s {
		t.Errorf("state %s, want %s", i.State, s)
	}
}

func TestGrouping(t *testing.T) {
	b := newBench(t)
	for n := range 6 {
		b.send(fmt.Sprint("order:", n%3), nil)
	}
	b.send("sku:1", func(ev *notify.Event) { ev.Service = "stock" })
	b.send("order:1", expired)
	b.round(0)
	list := b.incidents(3)
	if i := list[0]; i.Service != "orders" || i.Events != 6 || i.Keys != 3 || i.Cluster != "main" || i.Shard != shard || i.Place.Slot != slot ||
		i.Key != "v1|orders|unknown|main|"+shard || i.DocLink != "docs/alerts/unknown.md" || len(i.Evidence) == 0 {
		t.Errorf("first incident %+v", i)
	}
	if i := list[1]; i.Service != "stock" || i.Events != 1 {
		t.Errorf("second incident %+v", i)
	}
	if i := list[2]; i.Cause != incident.Overrun || i.Events != 1 {
		t.Errorf("third incident %+v", i)
	}
	b.round(time.Second)
	b.incidents(3)
}

func TestStates(t *testing.T) {
	b := newBench(t)
	b.send("k", nil)
	b.round(0)
	wantState(t, b.incidents(1)[0], incident.New)

	b.now = b.now.Add(2 * time.Minute)
	b.send("k", nil)
	b.round(0)
	wantState(t, b.incidents(1)[0], incident.Ongoing)

	for range 12 {
		b.send("k", nil)
	}
	b.round(time.Second)
	wantState(t, b.incidents(1)[0], incident.Escalating)
	b.round(time.Second)
	wantState(t, b.incidents(1)[0], incident.Escalating)
	b.round(2 * time.Minute)
	wantState(t, b.incidents(1)[0], incident.Ongoing)

	b.pass(11 * time.Minute)
	i := b.incidents(1)[0]
	wantState(t, i, incident.Resolved)
	if i.ResolvedAt.IsZero() || i.State.Open() {
		t.Errorf("resolved incident %+v", i)
	}

	b.send("k", nil)
	b.round(time.Hour)
	i = b.incidents(1)[0]
	wantState(t, i, incident.Regressed)
	if i.Regressed != 1 || !i.ResolvedAt.IsZero() || i.Events != 15 {
		t.Errorf("regressed incident %+v", i)
	}
	b.pass(11 * time.Minute)
	b.now = b.now.AddDate(0, 0, 8)
	b.send("k", nil)
	b.round(0)
	wantState(t, b.incidents(2)[1], incident.New)
}

func TestSettle(t *testing.T) {
	b := newBench(t)
	b.tracker = incident.NewTracker(incident.Config{Store: b.store, Locator: b, Settle: time.Hour})
	b.send("a", nil)
	for _, after := range []time.Duration{0, 59 * time.Minute} {
		b.round(after)
		b.incidents(0)
	}
	b.round(2 * time.Hour)
	b.incidents(1)
}

// An event that was stored before the clock was set back does not keep back
// those that come after.
func TestSettleAfterTheClockWasSetBack(t *testing.T) {
	b := newBench(t)
	b.tracker = incident.NewTracker(incident.Config{Store: b.store, Locator: b})
	b.send("a", nil)
	b.send("b", expired)
	b.round(-time.Hour)
	b.incidents(2)
}

// What the monitor cannot hear is not over.
func TestNothingIsOverWhileNobodyIsHeard(t *testing.T) {
	b := newBench(t)
	b.send("k", nil)
	b.round(0)
	b.connected = false
	b.pass(15 * time.Minute)
	wantState(t, b.incidents(1)[0], incident.New)
	b.connected = true
	b.pass(9 * time.Minute)
	wantState(t, b.incidents(1)[0], incident.New)
	b.tracker = b.track(b.store) // after a pause
	b.round(time.Hour)
	b.pass(9 * time.Minute)
	wantState(t, b.incidents(1)[0], incident.New)
	b.pass(2 * time.Minute)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

// That heartbeats can't be read keeps no incident open.
func TestOverWithoutHeartbeats(t *testing.T) {
	b := newBench(t)
	b.listening = false
	b.send("k", nil)
	b.round(0)
	b.pass(11 * time.Minute)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

func TestUnwatched(t *testing.T) {
	b := newBench(t)
	b.watching = false
	b.saw(failover(-2))
	b.send("a", nil)
	b.round(0)
	if i := b.incidents(1)[0]; i.Cause != incident.Unknown || i.Cluster != "" {
		t.Errorf("incident %+v, want an unknown cause", i)
	}
}

// TestRestart: another Tracker goes on where the first one stopped.
func TestTrackerRestart(t *testing.T) {
	b := newBench(t)
	b.send("a", nil)
	b.round(0)
	b.saw(failover(0.5))
	b.send("b", nil)
	b.tracker = incident.NewTracker(incident.Config{Store: b.store, Locator: b, Settle: -1})
	b.round(time.Second)
	total := int64(0)
	for _, i := range b.incidents(2) {
		total += i.Events
		if i.State.Open() && i.Cause != incident.Failover {
			t.Errorf("open incident %+v", i)
		}
	}
	if total != 2 {
		t.Errorf("%d events, want 2", total)
	}
}
