package selfcheck_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/selfcheck"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a Check in a bubble, with two parts and a receiver in memory.
type stage struct {
	t     *testing.T
	route selfcheck.Route
	inbox *inbox
	log   *memory
	parts map[string]*part
	stop  func()
}

func onStage(t *testing.T, change func(*selfcheck.Route), test func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, inbox: &inbox{}, log: &memory{}, parts: map[string]*part{"broker": {}, "store": {}}}
		s.route = selfcheck.Route{To: s.inbox, Failures: true, Repeat: 10 * time.Minute, Resolved: true}
		if change != nil {
			change(&s.route)
		}
		s.start()
		defer func() { s.stop() }()
		test(s)
	})
}

func (s *stage) start() { s.startWith("broker", "store") }

// startWith starts a Check of some of the parts.
func (s *stage) startWith(names ...string) {
	cfg := selfcheck.Config{Routes: []selfcheck.Route{s.route}, Log: s.log, DocsURL: "http://d/", ExternalURL: "http://m", Logger: slog.New(slog.DiscardHandler)}
	for _, name := range names {
		cfg.Parts = append(cfg.Parts, selfcheck.Part{Name: name, Summary: "no " + name, Next: "look", Err: s.parts[name].get})
	}
	c, err := selfcheck.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx)
	}()
	s.stop = func() {
		cancel()
		<-done
	}
}

// expect lets time pass and compares what was sent meanwhile. The watchdog and what watches the
// parts send beside each other, so what they send at one moment has no order.
func (s *stage) expect(after time.Duration, want ...string) {
	s.t.Helper()
	<-time.After(after) // on the bubble's clock
	synctest.Wait()
	got := s.inbox.take()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("sent %q, want %q", got, want)
	}
}

// part works or fails.
type part struct {
	mu  sync.Mutex
	err error
}

func (p *part) get(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *part) fail() { p.set(errors.New("it is away")) }
func (p *part) work() { p.set(nil) }

func (p *part) set(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// inbox is a receiver in memory.
type inbox struct {
	mu      sync.Mutex
	got     []*receiver.Notification
	refuses error
	tries   int
}

func (*inbox) Name() string { return "night" }

func (b *inbox) Send(_ context.Context, n *receiver.Notification) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if b.refuses != nil {
		return b.refuses
	}
	b.got = append(b.got, n)
	return nil
}

func (b *inbox) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses, b.tries = err, 0
}

// take returns what came since the last call, as "part status, part status".
func (b *inbox) take() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.got {
		var alerts []string
		for _, a := range n.Alerts {
			name := a.Labels["part"]
			if n.Routine {
				name = a.Labels["alertname"]
			}
			alerts = append(alerts, fmt.Sprintf("%s %s", name, a.Status()))
		}
		all = append(all, strings.Join(alerts, ", "))
	}
	b.got = nil
	return all
}

// memory is a log that may take nothing.
type memory struct {
	mu   sync.Mutex
	list []store.Notification
	full bool
}

func (m *memory) Notifications(_ context.Context, id string, _ int) (found []store.Notification, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range slices.Backward(m.list) {
		if id == "" || n.Incident == id {
			found = append(found, n)
		}
	}
	return found, nil
}

func (m *memory) AddNotifications(_ context.Context, list []store.Notification) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errors.New("disk full")
	}
	m.list = append(m.list, list...)
	return nil
}

func (m *memory) setFull(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}
