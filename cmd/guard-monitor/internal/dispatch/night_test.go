package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
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

// memory is a store as the dispatcher sees one.
type memory struct {
	mu        sync.Mutex
	incidents map[string]incident.Incident
	saves     int64
	asked     int // calls of Told
	log       []store.Notification
	failing   bool
}

func (m *memory) save(i incident.Incident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.incidents[i.ID] = i
	m.saves++
}

func (m *memory) setFailing(failing bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = failing
}

func (m *memory) Current(context.Context) (store.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := store.Snapshot{Version: m.saves + time.Now().Unix()/60}
	for _, i := range m.incidents {
		if i.State.Open() || time.Since(i.UpdatedAt) <= store.Recent {
			now.Incidents = append(now.Incidents, &i)
		}
	}
	return now, nil
}

func (m *memory) Told(_ context.Context, receiver string, incidents []string) (map[string]store.Told, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	told := make(map[string]store.Told)
	for _, n := range m.log {
		if n.Receiver == receiver && n.Error == "" && slices.Contains(incidents, n.Incident) {
			told[n.Incident] = n.Told()
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
