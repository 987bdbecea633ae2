package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/monitor/dispatch"
	"github.com/belaygo/belay/internal/monitor/incident"
	"github.com/belaygo/belay/internal/monitor/receiver"
	"github.com/belaygo/belay/internal/monitor/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inbox is a receiver in memory.
type inbox struct {
	mu   sync.Mutex
	got  []message
	fail func(n *receiver.Notification) error
}

type message struct {
	at time.Time
	*receiver.Notification
}

func (*inbox) Name() string { return "night" }

func (b *inbox) Send(_ context.Context, n *receiver.Notification) error {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		if err := fail(n); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, message{time.Now(), n})
	return nil
}

func (b *inbox) setFail(fail func(*receiver.Notification) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = fail
}

// take returns what came since the last call, as "reason: status count".
func (b *inbox) take() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.got {
		all = append(all, fmt.Sprintf("%s: %s %d", m.Reason, m.Status(), len(m.Alerts)+m.More))
	}
	b.got = nil
	return all
}

// night is a dispatcher in a bubble, with a store in memory: a bubble's day is
// 86,400 rounds.
type night struct {
	t     *testing.T
	store *memory
	inbox *inbox
	route dispatch.Route
	stop  func()
}

func inBubble(t *testing.T, change func(*dispatch.Route), test func(*night)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t, store: &memory{incidents: map[string]incident.Incident{}}, inbox: &inbox{}}
		n.route = dispatch.Route{
			To: n.inbox, GroupBy: []string{"service", "cause"}, GroupWait: 10 * time.Second,
			GroupInterval: 5 * time.Minute, RepeatInterval: 4 * time.Hour, Resolved: true,
		}
		if change != nil {
			change(&n.route)
		}
		n.start()
		defer func() { n.stop() }()
		test(n)
	})
}

func (n *night) start() {
	d, err := dispatch.New(dispatch.Config{Store: n.store, Routes: []dispatch.Route{n.route}, ExternalURL: "http://m", DocsURL: "http://d/"})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Run(ctx)
	}()
	synctest.Wait() // the first round is over before anything happens
	n.stop = func() {
		cancel()
		<-done
	}
}

// save stores an incident in that state.
func (n *night) save(id, service string, state incident.State, change ...func(*incident.Incident)) {
	n.t.Helper()
	now := time.Now()
	i := incident.Incident{
		ID: id, Key: id, Service: service, Cause: incident.Failover, Confidence: incident.High, State: state,
		FirstAt: now, LastAt: now, SeenAt: now, UpdatedAt: now, DocLink: "docs/alerts/failover.md",
	}
	if state == incident.Resolved {
		i.ResolvedAt = now
	}
	for _, c := range change {
		c(&i)
	}
	n.store.save(i)
}

// expect lets time pass and compares what was told meanwhile.
func (n *night) expect(after time.Duration, want ...string) {
	n.t.Helper()
	<-time.After(after) // on the bubble's clock
	synctest.Wait()
	if got := n.inbox.take(); !slices.Equal(got, want) {
		n.t.Errorf("told %q, want %q", got, want)
	}
}

func TestLife(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(8 * time.Second)
		n.save("2", "orders", incident.New)
		n.expect(4*time.Second, "first notification: firing 2")
		n.expect(3 * time.Hour)
		n.save("3", "orders", incident.New)
		n.expect(2*time.Second, "new alerts added: firing 3")
		n.save("4", "orders", incident.New)
		n.expect(4 * time.Minute)
		n.expect(time.Minute+2*time.Second, "new alerts added: firing 4")
		n.expect(4*time.Hour, "repeat interval elapsed: firing 4")
		n.save("1", "orders", incident.Resolved)
		n.expect(6*time.Minute, "some alerts resolved: firing 4")
		for _, id := range []string{"2", "3", "4"} {
			n.save(id, "orders", incident.Resolved)
		}
		n.expect(6*time.Minute, "all alerts resolved: resolved 3")
		n.expect(12 * time.Hour)
		n.save("4", "orders", incident.Regressed, func(i *incident.Incident) { i.Regressed = 1 })
		n.expect(15*time.Second, "first notification: firing 1")
	})
}

func TestGroups(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.save("2", "stock", incident.New)
		n.expect(15*time.Second, "first notification: firing 1", "first notification: firing 1")
	})
	inBubble(t, func(r *dispatch.Route) { r.GroupBy = nil }, func(n *night) {
		n.save("1", "orders", incident.New)
		n.save("2", "stock", incident.New)
		n.expect(15*time.Second, "first notification: firing 2")
	})
}

// What got worse and what was explained is told without waiting.
func TestWorseAndExplained(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New, func(i *incident.Incident) { i.Cause = incident.Unknown })
		n.expect(15*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Ongoing)
		n.expect(2*time.Second, "cause found: firing 1")
		n.save("1", "orders", incident.Escalating)
		n.expect(2*time.Second, "escalated: firing 1")
		n.save("1", "orders", incident.Ongoing)
		n.save("1", "orders", incident.Escalating)
		n.expect(10 * time.Minute)
	})
}

// An incident that was over before anybody could be told is told all the same.
func TestShort(t *testing.T) {
	for _, resolved := range []bool{true, false} {
		inBubble(t, func(r *dispatch.Route) { r.Resolved = resolved }, func(n *night) {
			n.save("1", "orders", incident.New)
			n.save("1", "orders", incident.Resolved)
			n.save("2", "orders", incident.Resolved, func(i *incident.Incident) { i.MergedInto = "1" })
			n.expect(15*time.Second, "first notification: resolved 1")
			n.expect(24 * time.Hour)
		})
	}
}

func TestNoResolved(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.Resolved = false }, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Resolved)
		n.expect(time.Hour)
		n.save("1", "orders", incident.Regressed)
		n.expect(15*time.Second, "first notification: firing 1")
	})
}

func TestAcknowledge(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Ongoing, acked)
		n.expect(24 * time.Hour)
		n.save("1", "orders", incident.Escalating, acked)
		n.expect(2*time.Second, "escalated: firing 1")
	})
}

func acked(i *incident.Incident) { i.AckedBy = "ann" }

func TestSilence(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New, func(i *incident.Incident) { i.Silenced = true })
		n.save("2", "stock", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.expect(time.Hour)
		n.save("1", "orders", incident.Ongoing)
		n.expect(15*time.Second, "first notification: firing 1")
	})
}

// After a restart nothing is told again, and nothing is forgotten.
func TestRestart(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.stop()
		n.save("2", "stock", incident.New) // stored, and killed before the alert
		n.start()
		n.expect(15*time.Second, "first notification: firing 1")
		n.stop()
		n.start()
		n.expect(3 * time.Hour)
		n.expect(time.Hour+time.Minute, "repeat interval elapsed: firing 1", "repeat interval elapsed: firing 1")
	})
}

// A receiver that does not answer is asked again, ever more seldom, until it
// has all of it.
func TestRetry(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		var tries []time.Time
		n.inbox.setFail(func(*receiver.Notification) error {
			tries = append(tries, time.Now())
			return errors.New("no answer")
		})
		n.save("1", "orders", incident.New)
		n.expect(time.Hour)
		n.inbox.setFail(nil)
		n.expect(5*time.Minute+2*time.Second, "first notification: firing 1")
		if len(tries) < 15 || len(tries) > 25 || tries[1].Sub(tries[0]) > 2*time.Second || tries[14].Sub(tries[13]) < 4*time.Minute {
			t.Errorf("%d tries at %v", len(tries), tries)
		}
		log := n.store.log
		if len(log) != 2 || log[1].Error != "" || log[1].Attempts != len(tries)+1 || !strings.Contains(log[0].Error, "no answer") {
			t.Errorf("log %+v", log)
		}
	})
}

// The retry that a receiver asks for is kept, and one message that is refused
// holds up no other.
func TestRefused(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		tries := 0
		n.inbox.setFail(func(n *receiver.Notification) error {
			if n.GroupLabels["service"] == "orders" {
				tries++
				return &receiver.Error{Permanent: true}
			}
			return nil
		})
		n.save("1", "orders", incident.New)
		n.save("2", "stock", incident.New)
		n.expect(4*time.Minute, "first notification: firing 1")
		if tries != 1 {
			t.Errorf("a refused message was tried %d times in 4 minutes", tries)
		}
		n.inbox.setFail(func(*receiver.Notification) error { return &receiver.Error{RetryAfter: 20 * time.Minute} })
		n.expect(10 * time.Minute)
		n.inbox.setFail(nil)
		n.expect(8 * time.Minute)
		n.expect(10*time.Minute, "first notification: firing 1")
	})
}

// More than the rate becomes one digest, and nothing is left out.
func TestRate(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.RatePerMinute, r.MaxAlerts = 3, 10 }, func(n *night) {
		for i := range 40 {
			n.save(fmt.Sprint(i), fmt.Sprint("service", i), incident.New)
		}
		n.expect(15*time.Second, "digest of 40 groups: firing 40")
		n.save("a", "a", incident.New)
		n.save("b", "b", incident.New)
		n.expect(15*time.Second, "first notification: firing 1", "first notification: firing 1")
		n.save("c", "c", incident.New)
		n.save("d", "d", incident.New)
		n.expect(20 * time.Second) // the minute has its three
		n.expect(30*time.Second, "digest of 2 groups: firing 2")
		n.expect(time.Hour)
		if got := n.inbox.got; len(got) > 0 {
			t.Errorf("told %v", got)
		}
	})
}

// Alertmanager hears of what goes on all the time, and the log does not grow.
// A digest that is refused, since it is too long, does not keep the messages back
// that it was made of.
func TestDigestRefused(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.RatePerMinute = 2 }, func(n *night) {
		n.inbox.setFail(func(m *receiver.Notification) error {
			if strings.HasPrefix(m.Reason, "digest") {
				return &receiver.Error{Receiver: "night", Permanent: true}
			}
			return nil
		})
		for _, service := range []string{"a", "b", "c", "d"} {
			n.save(service, service, incident.New)
		}
		first := "first notification: firing 1"
		n.expect(5*time.Minute, first, first, first, first)
	})
}

func TestContinuous(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) {
		r.Continuous, r.GroupBy, r.GroupWait, r.GroupInterval, r.RepeatInterval = true, nil, 0, 0, time.Minute
	}, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(2*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Ongoing, acked)
		n.expect(time.Minute+2*time.Second, "repeat interval elapsed: firing 1")
		n.save("2", "orders", incident.New)
		n.expect(2*time.Second, "new alerts added: firing 2")
		n.expect(time.Minute+2*time.Second, "repeat interval elapsed: firing 2")
		n.save("1", "orders", incident.Resolved)
		n.expect(2*time.Second, "some alerts resolved: firing 2")
		n.save("2", "orders", incident.Resolved)
		n.expect(2*time.Second, "all alerts resolved: resolved 1")
		n.expect(time.Hour)
		if log := n.store.log; len(log) != 6 {
			t.Errorf("log %+v", log)
		}
	})
}

// A message that is on its way when the program stops arrives and is logged.
func TestStop(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.inbox.setFail(func(*receiver.Notification) error {
			<-time.After(2 * time.Second) // on the bubble's clock
			return nil
		})
		n.save("1", "orders", incident.New)
		n.expect(11 * time.Second)
		n.stop()
		if got := n.inbox.take(); !slices.Equal(got, []string{"first notification: firing 1"}) {
			t.Errorf("told %q", got)
		}
		if log := n.store.log; len(log) != 1 {
			t.Errorf("log %v", log)
		}
	})
}

// The store keeps who was told; while it cannot, nobody is told twice.
func TestStoreFails(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.store.setFailing(true)
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.expect(10 * time.Minute)
		n.store.setFailing(false)
		n.expect(10 * time.Minute)
	})
}

// memory is a store as the dispatcher sees one.
type memory struct {
	mu        sync.Mutex
	incidents map[string]incident.Incident
	log       []store.Notification
	failing   bool
}

func (m *memory) save(i incident.Incident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.incidents[i.ID] = i
}

func (m *memory) setFailing(failing bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = failing
}

func (m *memory) Incidents(_ context.Context, f store.IncidentFilter) (found []incident.Incident, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.incidents {
		if i.State.Open() == f.Open && !i.UpdatedAt.Before(f.UpdatedSince) {
			found = append(found, i)
		}
	}
	return found, nil
}

func (m *memory) Told(_ context.Context, receiver string, _ time.Time) (map[string]store.Told, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := make(map[string]store.Told)
	for _, n := range m.log {
		if n.Receiver == receiver && n.Error == "" {
			told[n.Incident] = store.Told{At: n.At, State: n.State, Cause: n.Cause}
		}
	}
	return told, nil
}

func (m *memory) AddNotifications(_ context.Context, list []store.Notification) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing {
		return errors.New("disk full")
	}
	m.log = append(m.log, list...)
	return nil
}

func TestNewRefuses(t *testing.T) {
	ok := dispatch.Route{To: &inbox{}, RepeatInterval: time.Hour}
	for want, cfg := range map[string]dispatch.Config{
		"Config.Store":  {},
		"Routes[0].To":  {Store: &memory{}, Routes: []dispatch.Route{{}}},
		"is taken":      {Store: &memory{}, Routes: []dispatch.Route{ok, ok}},
		"RepeatInterva": {Store: &memory{}, Routes: []dispatch.Route{{To: &inbox{}}}},
	} {
		if _, err := dispatch.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q named", err, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	d, err := dispatch.New(dispatch.Config{Store: &memory{}, Routes: []dispatch.Route{{To: &inbox{}, RepeatInterval: time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(d)
	families, err := registry.Gather()
	if err != nil || len(families) != 3 {
		t.Errorf("metrics %v, %v", families, err)
	}
}
