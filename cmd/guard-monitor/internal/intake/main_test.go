package intake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(n int) notify.Event {
	return notify.Event{
		ID:       fmt.Sprintf("0199a1b2-0000-7000-8000-%012d", n),
		Service:  "orders",
		Verdict:  notify.VerdictOverlap,
		Outcome:  notify.OutcomeRefused,
		Key:      fmt.Sprintf("order:中国:%d", n),
		CaughtAt: time.Date(2026, 11, 21, 9, 30, 7, 0, time.UTC),
		Count:    1,
	}
}

func newPublisher(t *testing.T, url string, cfg rabbitmq.Config) rabbitmq.Publisher {
	t.Helper()
	p, err := rabbitmq.New(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// publish repeats until the event is confirmed, as the outbox does.
func publish(t *testing.T, p rabbitmq.Publisher, n int) {
	t.Helper()
	testwait.Until(t, fmt.Sprintf("event %d is published", n), func() bool {
		return p.Publish(t.Context(), event(n)) == nil
	})
}

// consume runs a consumer until stop is called or the test ends.
func consume(t *testing.T, url string, cfg intake.Config, handle intake.Handler) (c *intake.Consumer, stop func()) {
	t.Helper()
	c, err := intake.New(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, handle) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want context.Canceled", err)
		}
	})
	t.Cleanup(stop)
	return c, stop
}

func connected(c *intake.Consumer) func() bool { return func() bool { return c.Err() == nil } }

// A store counts how often it was given each event, and fails on demand.
type store struct {
	mu    sync.Mutex
	given map[string]int // by key
	fail  func(notify.Event) error
}

func (s *store) handle(_ context.Context, ev notify.Event, raw []byte, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given == nil {
		s.given = map[string]int{}
	}
	s.given[ev.Key]++
	var again notify.Event
	if err := again.UnmarshalJSON(raw); err != nil || again.ID != ev.ID {
		return fmt.Errorf("raw body is not that of the event: %w", err)
	}
	if s.fail != nil {
		return s.fail(ev)
	}
	return nil
}

func (s *store) times(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given[event(n).Key]
}

func (s *store) has(events ...int) bool {
	return !slices.ContainsFunc(events, func(n int) bool { return s.times(n) == 0 })
}

func declare(t *testing.T, url string) {
	t.Helper()
	if err := intake.Declare(t.Context(), url); err != nil {
		t.Fatal(err)
	}
}
